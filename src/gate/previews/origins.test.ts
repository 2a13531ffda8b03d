import assert from 'node:assert/strict'
import { once } from 'node:events'
import { request } from 'node:http'
import { suite, test } from 'node:test'
import { type Sides, startSides } from '../testing/simulated.ts'
import { browser, key, openedBy, previewHost, refused, visit } from '../testing/visiting.ts'

const id = '0e2b5d9a-1c3f-4e5a-9b7c-2d4f6a8b0c1e'
const named = '3000-shop.proxy.test:4601'
const https = { 'x-forwarded-proto': 'https' }

suite('a preview’s origin belongs to one sandbox', () => {
  test('a preview addressed by the sandbox’s name is redirected with 307 to its id, with path and query', async () => {
    await using sides = await startSides()
    for (const [call, location] of [
      [{ host: named, path: '/a/b?c=d%20e' }, `//${previewHost}/a/b?c=d%20e`],
      [{ host: named, path: '/a?DAYTONA_SANDBOX_AUTH_KEY=t%26k' }, `//${previewHost}/a?DAYTONA_SANDBOX_AUTH_KEY=t%26k`],
      [{ host: named, path: '//evil.test/' }, `//${previewHost}//evil.test/`],
      [{ host: named, method: 'HEAD' }, `//${previewHost}/`],
      [{ host: '127.0.0.1', path: '/preview/my%20shop/80/a?b' }, '/preview/box-id/80/a?b'],
    ] as const) {
      const { status, headers } = await visit(sides, { ...call, headers: { ...browser, ...key } })
      assert.deepEqual([status, headers.location, headers['set-cookie']], [307, location, undefined])
      assert.equal(headers['cache-control'], 'no-store')
    }
    assert.deepEqual(sides.dialled, [])
  })

  test('a preview addressed by the sandbox’s name answers 400 to all calls except GET and HEAD', async () => {
    await using sides = await startSides()
    for (const method of ['POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS']) {
      const { status, text } = await visit(sides, { host: named, method, headers: key })
      assert.equal(status, 400, method)
      assert.match(text, /box-id/)
    }
    const headers = { ...key, host: named, connection: 'Upgrade', upgrade: 'websocket' }
    const [answer] = await once(request({ port: sides.port, path: '/', headers }).end(), 'response')
    assert.equal(answer.resume().statusCode, 400)
    assert.deepEqual(sides.dialled, [])
  })

  test('a visitor whom control refuses is not redirected from the sandbox’s name to its id', async () => {
    await using sides = await startSides()
    refused(sides)
    const { status, headers } = await visit(sides, { host: named, headers: browser })
    assert.deepEqual([status, headers.location], [401, undefined])
  })

  test('a preview by path works only at the gate’s own host name; at other host names, the gate answers 404', async () => {
    await using sides = await startSides()
    const path = '/preview/box-id/3000/'
    for (const host of [
      'box-id.proxy.test',
      `${id}.proxy.test:4601`,
      'proxy.test',
      'evil.test',
      'x.80-own.proxy.test',
      'localhost:4601',
      '127.0.0.1.evil.test',
    ]) {
      assert.equal((await visit(sides, { host, path, headers: key })).status, 404, host)
    }
    assert.equal((await visit(sides, { host: '[::1].evil.test', path, headers: key })).status, 400)
    assert.equal(sides.asked.length, 0)
    for (const host of ['80-own.proxy.test', '80-own.proxy.test:9', '80-OWN.proxy.test.', '127.0.0.1', '[::1]:4601']) {
      assert.equal((await visit(sides, { host, path, headers: key })).status, 200, host)
    }
  })

  test('a host name below a preview’s name gets 404, because a page there could set the preview’s cookies', async () => {
    await using sides = await startSides()
    for (const parent of [`3000-${id}.proxy.test`, '80-abcdefghijklmn01.proxy.test', `x.1-${id}.proxy.test:4601`]) {
      assert.equal((await visit(sides, { host: `3000-box-id.${parent}`, headers: key })).status, 404, parent)
    }
    assert.deepEqual(sides.dialled, [])
    assert.equal((await visit(sides, { host: '3000-box-id.80-own.proxy.test', headers: key })).status, 200)
  })

  test('a preview by path has an opaque origin, even if its server sends its own Content-Security-Policy', async () => {
    await using sides = await startSides()
    sides.inside.call = (_request, response) => {
      response.writeHead(200, { 'content-security-policy': 'sandbox allow-same-origin' }).end('<p>')
    }
    const { headers } = await visit(sides, { host: '127.0.0.1', path: '/preview/box-id/3000/', headers: key })
    const policies = String(headers['content-security-policy']).split(/, */)
    assert.ok(
      policies.some((policy) => policy.startsWith('sandbox ') && !policy.includes('same-origin')),
      `${policies}`,
    )
    assert.doesNotMatch(String((await visit(sides, { headers: key })).headers['content-security-policy']), /popups/)
  })
})

suite('Alcove’s cookies in previews', () => {
  const page = '/?DAYTONA_SANDBOX_AUTH_KEY=t0ken-of-box'

  test('over TLS, browsers send a preview cookie only to that preview’s host, even in another site’s frame', async () => {
    await using sides = await startSides()
    openedBy(sides, 'preview-query')
    const { headers } = await visit(sides, { path: page, headers: { ...browser, ...https } })
    assert.deepEqual(headers['set-cookie'], [
      '__Host-daytona-sandbox-auth-box-id=t0ken-of-box; Path=/; Max-Age=3600; HttpOnly; SameSite=None; Secure; Partitioned',
    ])
  })

  test('the gate tries a cookie with the prefix __Host- first; the sandbox’s server gets no Alcove cookie', async () => {
    await using sides = await startSides()
    const forged = Array.from({ length: 9 }, (_, at) => `daytona-sandbox-auth-box-id=forged${at}`).join('; ')
    const cookie = `${forged}; __Host-daytona-sandbox-auth-box-id=true-one; __HOST-alcove-preview-accepted-x=1; theirs=1`
    await visit(sides, { headers: { cookie } })
    assert.deepEqual(sides.asked[0]?.credentials[0], { kind: 'preview-cookie', token: 'true-one' })
    assert.equal(sides.seen[0]?.headers.cookie, 'theirs=1')
  })

  test('a preview on the API’s host does not get the API’s cookies, although browsers send them to all ports', async () => {
    await using sides = await startSides()
    const ours = ['alcove-sso', '__Host-alcove-sso', 'alcove_session', 'alcove_session.sig', 'alcove_webhooks']
    const cookie = `${ours.map((name) => `${name}=secret`).join('; ')}; alcove=theirs`
    await visit(sides, { host: '127.0.0.1', path: '/preview/box-id/3000/', headers: { ...key, cookie } })
    assert.equal(sides.seen[0]?.headers.cookie, 'alcove=theirs')
  })

  test('a sandbox’s server cannot set a cookie with a name of Alcove’s, in any letter case', async () => {
    await using sides = await startSides()
    sides.inside.call = (_request, response) => {
      const cookies = ['__Host-daytona-sandbox-auth-x=1; Secure; Path=/', '__hOST-alcove-preview-accepted-x=1', 'a=1']
      response.writeHead(200, { 'set-cookie': cookies }).end()
    }
    assert.deepEqual((await visit(sides, { headers: key })).headers['set-cookie'], ['a=1'])
  })

  test('over TLS only a cookie with the __Host- prefix skips the preview warning', async () => {
    await using sides = await startSides()
    openedBy(sides, 'public', { warnsVisitors: true })
    const see = async (cookie: string) =>
      (await visit(sides, { headers: { ...browser, ...https, cookie } })).text.includes('<form')
    assert.equal(await see('alcove-preview-accepted-box-id=true'), true)
    assert.equal(await see('__Host-alcove-preview-accepted-box-id=true'), false)
  })

  test('over TLS another site may show the preview warning in a frame, but another sandbox’s page may not', async () => {
    await using sides = await startSides()
    openedBy(sides, 'public', { warnsVisitors: true })
    const policy = async (more: Record<string, string>) =>
      String(
        (await visit(sides, { headers: { ...browser, 'sec-fetch-dest': 'iframe', ...more } })).headers[
          'content-security-policy'
        ],
      )
    assert.doesNotMatch(await policy({ ...https, 'sec-fetch-site': 'cross-site' }), /frame-ancestors/)
    assert.match(await policy({ ...https, 'sec-fetch-site': 'same-site' }), /frame-ancestors 'none'/)
    assert.match(await policy({ 'sec-fetch-site': 'cross-site' }), /frame-ancestors 'none'/)
  })
})

suite('the pages from which a preview cookie is accepted', () => {
  const isOffered = async (
    sides: Sides,
    headers: Record<string, string>,
    more: { host?: string; path?: string } = {},
  ) => {
    await visit(sides, { ...more, headers: { cookie: 'daytona-sandbox-auth-box-id=c', ...headers } })
    return sides.asked.at(-1)!.credentials.length === 1
  }

  test('a preview cookie is not accepted from an origin that only resembles the preview’s origin', async () => {
    await using sides = await startSides()
    for (const origin of [
      'http://box-id.proxy.test:4601',
      'http://x3000-box-id.proxy.test',
      'http://3000-x.box-id.proxy.test',
      'http://3000-box-id.proxy.test.evil.test',
      'http://3000-3000-box-id.proxy.test',
      'http://3000-box-id.test',
    ]) {
      assert.equal(await isOffered(sides, { origin }), false, origin)
    }
    assert.equal(await isOffered(sides, { origin: 'http://8080-box-id.proxy.test' }), true)
  })

  test('a preview cookie is accepted from its sandbox’s pages and a dashboard, not in other previews’ frames', async () => {
    await using sides = await startSides()
    const frame = { ...browser, 'sec-fetch-dest': 'iframe', 'sec-fetch-site': 'same-site' }
    assert.equal(await isOffered(sides, { ...frame, referer: 'http://3000-other.proxy.test:4601/' }), false)
    assert.equal(await isOffered(sides, frame), false)
    assert.equal(await isOffered(sides, { ...frame, referer: 'http://8080-box-id.proxy.test:4601/' }), true)
    assert.equal(await isOffered(sides, { ...frame, referer: 'http://dashboard.proxy.test/' }), true)
  })

  test('without Sec-Fetch headers, a preview cookie gives access to pages, but not to scripts or images', async () => {
    await using sides = await startSides()
    const referer = 'http://3000-other.proxy.test:4601/'
    assert.equal(await isOffered(sides, { referer, accept: 'text/html' }), true)
    assert.equal(await isOffered(sides, { referer, accept: '*/*' }), false)
  })

  test('if previews share an origin, a preview cookie gives access to pages, but not in frames or by fetch', async () => {
    await using sides = await startSides()
    const byPath = { host: '127.0.0.1', path: '/preview/box-id/80/' }
    const opens = { ...browser, 'sec-fetch-site': 'same-origin', 'sec-fetch-dest': 'document' }
    assert.equal(await isOffered(sides, opens, byPath), true)
    for (const headers of [
      { origin: 'http://127.0.0.1' },
      { 'sec-fetch-site': 'same-origin', 'sec-fetch-mode': 'cors', 'sec-fetch-dest': 'empty' },
      { ...opens, 'sec-fetch-dest': 'iframe' },
    ] as Record<string, string>[]) {
      assert.equal(await isOffered(sides, headers, byPath), false, JSON.stringify(headers))
    }
  })
})

suite('the toolbox, which previews show at port 2280', () => {
  const host = '2280-box-id.proxy.test:4601'

  test('port 2280 of a preview serves toolbox paths only, to callers with an API key or a preview token', async () => {
    await using sides = await startSides()
    const token = { 'x-daytona-preview-token': 'a-preview-token' }
    assert.equal((await visit(sides, { host, path: '/process/session?x=1', headers: token })).text, 'hello')
    assert.equal(
      (await visit(sides, { host: '127.0.0.1', path: '/preview/box-id/2280/files?DAYTONA_SANDBOX_AUTH_KEY=tok' })).text,
      'hello',
    )
    assert.deepEqual(
      sides.seen.map(({ url }) => url),
      ['/toolbox/box-id/process/session?x=1', '/toolbox/box-id/files'],
    )
    assert.deepEqual(
      sides.asked.map(({ port, credentials }) => [port, credentials.map(({ kind }) => kind)]),
      [
        [undefined, ['preview-header']],
        [undefined, ['preview-query']],
      ],
    )
    assert.equal(sides.seen[0]?.headers['x-daytona-preview-token'], undefined)
    assert.deepEqual(sides.dialled, [])
  })

  test('port 2280 of a preview forwards a visitor’s WebSocket to the toolbox', async () => {
    await using sides = await startSides()
    sides.toolbox.upgrade = ({ url }, socket) => {
      socket.end(
        `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nX-Url: ${url}\r\n\r\n`,
      )
    }
    const headers = { host, connection: 'Upgrade', upgrade: 'websocket', 'x-daytona-preview-token': 'a-preview-token' }
    const [answer, socket] = await once(
      request({ port: sides.port, path: '/process/pty/p/connect', headers }).end(),
      'upgrade',
    )
    assert.equal(answer.headers['x-url'], '/toolbox/box-id/process/pty/p/connect')
    socket.destroy()
  })

  test('port 2280 of a signed preview address serves the toolbox, without another credential', async () => {
    await using sides = await startSides()
    sides.control.answer = () => sides.access({ openedBy: 'signed-preview' })
    const token = 'abcdefghijklmnop'
    const signed = { host: `2280-${token}.proxy.test:4601` }
    assert.equal((await visit(sides, { ...signed, path: '/process/session' })).text, 'hello')
    assert.equal((await visit(sides, { host: '127.0.0.1', path: `/preview/${token}/2280/files` })).text, 'hello')
    assert.deepEqual(
      sides.seen.map(({ url }) => url),
      ['/toolbox/box-id/process/session', '/toolbox/box-id/files'],
    )
    assert.ok(sides.asked.every(({ port, sandboxIdOrName }) => port === 2280 && sandboxIdOrName === token))
    assert.deepEqual(sides.dialled, [])
    sides.control.answer = () => ({ status: 401, body: {} })
    const unknown = { host: '2280-ponmlkjihgfedcba.proxy.test:4601' }
    assert.equal((await visit(sides, { ...unknown, path: '/work-dir' })).status, 401)
  })

  test('port 2280 answers 401 to a cookie, 404 to `..` in the path, 400 to a host name with a sandbox name', async () => {
    await using sides = await startSides()
    assert.equal((await visit(sides, { host, headers: { cookie: 'daytona-sandbox-auth-box-id=c' } })).status, 401)
    assert.equal((await visit(sides, { host, path: '/../other/files', headers: key })).status, 404)
    assert.equal(sides.asked.length, 0)
    assert.equal((await visit(sides, { host: '2280-shop.proxy.test', headers: key })).status, 400)
    assert.equal(sides.seen.length, 0)
  })
})
