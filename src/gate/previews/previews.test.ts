import assert from 'node:assert/strict'
import { request } from 'node:http'
import { suite, test } from 'node:test'
import { realClients } from '#src/http/testing/real-clients.ts'
import type { Access } from '#src/wire/access.ts'
import { startSides } from '../testing/simulated.ts'
import { browser, key, openedBy, previewHost, refused, visit } from '../testing/visiting.ts'

suite('addresses of previews', () => {
  test('a preview call waits until the runner has the generation that is in control’s answer', async () => {
    await using sides = await startSides()
    sides.control.answer = () => sides.access({ leastGeneration: 7 })
    assert.equal((await visit(sides, { path: '/' })).status, 200)
    assert.equal(sides.wanted.at(-1)?.leastGeneration, 7)
  })

  test('the gate finds the port and the sandbox of a preview in the host name or the path of the call', async () => {
    await using sides = await startSides()
    assert.equal((await visit(sides, { path: '/a/b?c=d' })).text, 'hello from inside')
    assert.equal((await visit(sides, { host: '127.0.0.1', path: '/preview/box%2Did/8080/a/b?c=d' })).status, 200)
    assert.deepEqual(
      sides.asked.map(({ sandboxIdOrName, port }) => [sandboxIdOrName, port]),
      [
        ['box-id', 3000],
        ['box-id', 8080],
      ],
    )
    assert.deepEqual(sides.dialled, ['box-id:3000', 'box-id:8080'])
    assert.equal(sides.wanted.at(-1)?.leastGeneration, undefined)
    assert.deepEqual(
      sides.seen.map(({ url }) => url),
      ['/a/b?c=d', '/a/b?c=d'],
    )
  })

  test('at a preview’s own host name, every path belongs to the sandbox’s server', async () => {
    await using sides = await startSides()
    for (const path of ['/toolbox/x/y', '/healthz', '/preview/other/80/', '//evil.test/', '/../x']) {
      assert.equal((await visit(sides, { path })).status, 200, path)
      assert.equal(sides.seen.at(-1)?.url, path)
    }
    assert.ok(sides.dialled.every((address) => address === 'box-id:3000'))
  })

  test('hosts that are IP addresses, `localhost` or the gate’s own host are not read as preview addresses', async () => {
    await using sides = await startSides()
    for (const host of ['80-own.proxy.test', '127.0.0.1:4601', '[::1]:4601', 'localhost', '80-', 'x-box.proxy.test']) {
      assert.equal((await visit(sides, { host, path: '/healthz' })).text, '{"status":"ok"}', host)
    }
    assert.equal(sides.asked.length, 0)
  })

  test('previews of reserved ports get 403, and of invalid ports or sandboxes 404; control is not asked', async () => {
    await using sides = await startSides()
    for (const port of [22_222, 33_333]) {
      assert.equal((await visit(sides, { host: `${port}-box.p.test` })).status, 403)
      assert.equal((await visit(sides, { host: '127.0.0.1', path: `/preview/box-id/${port}/` })).status, 403)
    }
    for (const port of ['0', '65536', '99999', '00000']) {
      assert.equal((await visit(sides, { host: `${port}-box.p.test` })).status, 404)
      assert.equal((await visit(sides, { host: '127.0.0.1', path: `/preview/box-id/${port}/` })).status, 404)
    }
    for (const path of ['/preview/', '/preview/box', '/preview/box-id/', '/preview/box-id/x/', '/preview/%ff/80/']) {
      assert.equal((await visit(sides, { host: '127.0.0.1', path })).status, 404, path)
    }
    assert.equal((await visit(sides, { path: `/${'x'.repeat(20_000)}` })).status, 400)
    assert.deepEqual([sides.asked.length, sides.dialled.length], [0, 0])
  })

  test('an absolute URL as the request target is read as its path, and its host replaces the Host header', async () => {
    await using sides = await startSides()
    for (const [path, url] of [
      ['http://3000-box-id.proxy.test/items/5?x=1', '/items/5?x=1'],
      ['http://3000-box-id.proxy.test?x=1', '/?x=1'],
      ['http://127.0.0.1/preview/box-id/3000/a', '/a'],
    ] as const) {
      assert.equal((await visit(sides, { method: 'DELETE', path, host: '4000-other.proxy.test' })).status, 200)
      assert.deepEqual(
        [sides.seen.at(-1)?.url, sides.asked.at(-1)?.sandboxIdOrName, sides.asked.at(-1)?.port],
        [url, 'box-id', 3000],
      )
    }
    assert.equal((await visit(sides, { path: 'ftp://3000-box-id.proxy.test/x' })).status, 400)
    assert.equal(sides.seen.length, 3)
  })

  test('a person who opens a preview path without the last slash is redirected; a program is not', async () => {
    await using sides = await startSides()
    const call = { host: '127.0.0.1', path: '/preview/box-id/80?a=b' }
    const { status, headers } = await visit(sides, { ...call, headers: browser })
    assert.deepEqual([status, headers.location], [303, '/preview/box-id/80/?a=b'])
    assert.equal((await visit(sides, call)).text, 'hello from inside')
    assert.equal(sides.seen[0]?.url, '/?a=b')
  })
})

suite('access to previews', () => {
  test('the gate sends all credentials of a preview call to control in the documented order, cookies last', async () => {
    await using sides = await startSides()
    const headers = {
      ...key,
      'x-daytona-preview-token': 'h',
      cookie: 'a=b; daytona-sandbox-auth-box-id=c; daytona-sandbox-auth-x=; theirs=1',
    }
    await visit(sides, { path: '/?DAYTONA_SANDBOX_AUTH_KEY=q', headers })
    assert.deepEqual(sides.asked[0]?.credentials, [
      { kind: 'bearer', token: 'dtn_key' },
      { kind: 'preview-header', token: 'h' },
      { kind: 'preview-query', token: 'q' },
      { kind: 'preview-cookie', token: 'c' },
    ])
  })

  test('control is asked about a preview call without a credential, because the port may be public', async () => {
    await using sides = await startSides()
    openedBy(sides, 'public')
    assert.equal((await visit(sides)).status, 200)
    assert.deepEqual(sides.asked[0]?.credentials, [])
  })

  test('a refused preview call gets 401, as JSON for programs and as a page for people', async () => {
    await using sides = await startSides()
    refused(sides)
    const program = await visit(sides)
    assert.deepEqual([program.status, JSON.parse(program.text).code], [401, 'UNAUTHORIZED'])
    const person = await visit(sides, { headers: browser })
    assert.equal(person.status, 401)
    assert.match(String(person.headers['content-type']), /text\/html/)
    assert.match(person.text, /<h1>401 Unauthorized<\/h1>/)
    assert.deepEqual(sides.dialled, [])
  })

  test('a preview’s error page shows control’s message as text, not as markup', async () => {
    await using sides = await startSides()
    sides.control.answer = () => ({ status: 404, body: { message: '<script>alert(1)</script>' } })
    const { text } = await visit(sides, { headers: browser })
    assert.ok(!text.includes('<script>') && text.includes('&lt;script&gt;'))
  })

  test('a preview of a sandbox that is not started gets 409', async () => {
    await using sides = await startSides()
    sides.control.answer = () => sides.access({ isStarted: false, state: 'stopped' })
    assert.equal((await visit(sides)).status, 409)
  })

  test('a preview gets 502 if nothing listens on its port, 409 or 503 if the sandbox cannot be reached', async () => {
    await using sides = await startSides()
    sides.dialRefusal = 'connect'
    const program = await visit(sides)
    assert.equal(program.status, 502)
    assert.match(JSON.parse(program.text).message, /Nothing listens on port 3000/)
    assert.match((await visit(sides, { headers: browser })).text, /<h1>Nothing listens on port 3000 yet/)
    for (const [stage, status] of [
      ['ending', 409],
      ['busy', 503],
    ] as const) {
      sides.dialRefusal = stage
      assert.equal((await visit(sides)).status, status)
    }
    sides.status = 'stopped'
    sides.dialRefusal = undefined
    assert.equal((await visit(sides)).status, 409)
  })

  for (const [name, postTwice] of Object.entries(realClients)) {
    test(`a call from ${name} to a preview of a port on which nothing listens gets 502, whatever the size of its body`, async () => {
      await using sides = await startSides()
      sides.dialRefusal = 'connect'
      const headers = { ...key, 'content-type': 'text/plain' }
      const url = `${sides.url}/preview/box-id/3000/`
      assert.deepEqual(await postTwice([700_000, 5_000_000].map((bytes) => ({ url, headers, bytes }))), [
        [502, 502],
        [502, 502],
      ])
    })
  }

  test('the gate answers a preflight that control refuses; the sandbox’s server answers other preflights', async () => {
    await using sides = await startSides()
    const preflight = {
      method: 'OPTIONS',
      headers: {
        origin: 'https://app.test',
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'x-daytona-preview-token',
      },
    }
    openedBy(sides, 'public')
    sides.inside.call = (_request, response) => {
      response.writeHead(200, { 'access-control-allow-origin': 'https://only.test' }).end()
    }
    assert.equal((await visit(sides, preflight)).headers['access-control-allow-origin'], 'https://only.test')
    refused(sides)
    await using others = await startSides()
    refused(others)
    const { status, headers } = await visit(others, preflight)
    assert.deepEqual([status, headers['access-control-allow-headers']], [204, 'x-daytona-preview-token'])
    assert.equal((await visit(others, { method: 'OPTIONS' })).status, 401)
  })

  test('during a preview call, the gate asks control at intervals, and ends the call when control refuses', async () => {
    await using sides = await startSides({ presenceMs: 5 })
    sides.inside.call = (_request, response) => {
      response.write('a part')
      refused(sides)
    }
    await assert.rejects(visit(sides))
    assert.deepEqual([sides.asked[0]?.wasLetIn, sides.asked.at(-1)?.wasLetIn], [undefined, true])
  })
})

suite('the preview token in a query', () => {
  const path = '/page?a=1&DAYTONA_SANDBOX_AUTH_KEY=t0ken&b=%20'

  test('a person with a token in the query gets a cookie, and is redirected to the address without the token', async () => {
    await using sides = await startSides()
    openedBy(sides, 'preview-query')
    const { status, headers } = await visit(sides, { path, headers: browser })
    assert.deepEqual([status, headers.location], [303, '/page?a=1&b=%20'])
    assert.deepEqual(headers['set-cookie'], [
      'daytona-sandbox-auth-box-id=t0ken; Path=/; Max-Age=3600; HttpOnly; SameSite=Lax',
    ])
    assert.deepEqual(sides.dialled, [])
  })

  test('if previews share a host, the cookie with a preview token is only for the paths of that preview', async () => {
    await using sides = await startSides()
    openedBy(sides, 'preview-query')
    const call = { host: '127.0.0.1', path: `/preview/box-id/80${path}` }
    const { headers } = await visit(sides, { ...call, headers: { ...browser, 'x-forwarded-proto': 'https' } })
    assert.equal(headers.location, '/preview/box-id/80/page?a=1&b=%20')
    assert.match(String(headers['set-cookie']), /; Path=\/preview\/box-id\/80\/; .*; Secure$/)
  })

  test('the gate does not redirect a program that sends a preview token in the query, but removes the token', async () => {
    await using sides = await startSides()
    openedBy(sides, 'preview-query')
    const { text, headers } = await visit(sides, { path })
    assert.equal(text, 'hello from inside')
    assert.match(String(headers['set-cookie']), /^daytona-sandbox-auth-box-id=t0ken;/)
    assert.equal(sides.seen[0]?.url, '/page?a=1&b=%20')
  })

  test('the redirect that removes a preview token from an address leads to no other host, whatever the path', async () => {
    await using sides = await startSides()
    openedBy(sides, 'preview-query')
    for (const start of ['//evil.test', '/\\evil.test', '///evil.test']) {
      const { headers } = await visit(sides, { path: `${start}/?DAYTONA_SANDBOX_AUTH_KEY=t`, headers: browser })
      assert.equal(headers.location, '/evil.test/')
    }
  })
})

suite('how a sandbox’s server receives a preview call', () => {
  test('a sandbox’s server sees the caller’s headers and address, and no credential of Alcove', async () => {
    await using sides = await startSides()
    await visit(sides, {
      path: '/?DAYTONA_SANDBOX_AUTH_KEY=s3cret-q',
      headers: {
        authorization: 'Bearer dtn_s3cret',
        'x-daytona-preview-token': 's3cret-h',
        'x-daytona-organization-id': 'o',
        'x-daytona-skip-preview-warning': 'true',
        cookie: 'daytona-sandbox-auth-box-id=s3cret-c; theirs=1; alcove-preview-accepted-box-id=true; more=a=b',
        referer: `http://${previewHost}/?DAYTONA_SANDBOX_AUTH_KEY=s3cret-q`,
        'x-forwarded-for': '203.0.113.7',
        'x-forwarded-host': 'evil.test',
        'x-theirs': 'kept',
        te: 'trailers',
      },
    })
    const { headers, url } = sides.seen[0]!
    assert.doesNotMatch(JSON.stringify(sides.seen), /s3cret/)
    assert.equal(url, '/')
    assert.deepEqual(headers, {
      host: previewHost,
      'x-theirs': 'kept',
      cookie: 'theirs=1; more=a=b',
      referer: `http://${previewHost}/`,
      'x-forwarded-for': '203.0.113.7, 127.0.0.1',
      'x-forwarded-host': previewHost,
      'x-forwarded-port': '4601',
      'x-forwarded-proto': 'http',
      connection: 'close',
    })
  })

  test('the gate passes Authorization headers on to the sandbox’s server, unless they are for Alcove', async () => {
    await using sides = await startSides()
    const seen = async (authorization: string, access: Partial<Access>) => {
      openedBy(sides, 'public', access)
      await visit(sides, { headers: { authorization } })
      return sides.seen.at(-1)?.headers.authorization
    }
    assert.equal(await seen('Bearer of-the-app', {}), 'Bearer of-the-app')
    assert.equal(await seen('Basic dTpw', {}), 'Basic dTpw')
    assert.equal(await seen('Bearer dtn_old', {}), undefined)
    assert.equal(await seen('Bearer eyJ.a.b', { isBearerOurs: true }), undefined)
    assert.equal(await seen('Bearer eyJ.c.d', { openedBy: 'bearer' }), undefined)
  })

  test('the gate replaces a signed address’s token by the sandbox id, and puts the token back in redirects', async () => {
    await using sides = await startSides()
    const token = 'abcdefghijklmn01'
    openedBy(sides, 'signed-preview')
    const host = `3000-${token}.p.test`
    sides.inside.call = (request, response) => {
      sides.seen.push({ method: request.method!, url: request.url!, headers: request.headers, body: '' })
      response.writeHead(302, { location: `http://${request.headers.host}/next` }).end()
    }
    const named = await visit(sides, { host, headers: { origin: `http://${host}`, referer: `http://${host}/x` } })
    assert.equal(named.headers.location, `http://${host}/next`)
    const byPath = await visit(sides, { host: '127.0.0.1', path: `/preview/${token}/3000/` })
    assert.equal(byPath.headers.location, `http://127.0.0.1/preview/${token}/3000/next`)
    assert.doesNotMatch(JSON.stringify(sides.seen), new RegExp(token))
    assert.deepEqual(
      [sides.seen[0]?.headers.host, sides.seen[0]?.headers.origin, sides.seen[1]?.headers['x-forwarded-prefix']],
      ['3000-box-id.p.test', 'http://3000-box-id.p.test', '/preview/box-id/3000'],
    )
  })

  test('the gate makes a new connection to the sandbox’s server for each preview call', async () => {
    await using sides = await startSides()
    for (let i = 0; i < 3; i++) await visit(sides)
    assert.equal(sides.dialled.length, 3)
  })

  test('the gate answers with HTTP/1.1 if a preview call offers HTTP/2, also if the call has a body', async () => {
    await using sides = await startSides()
    const headers = { connection: 'Upgrade, HTTP2-Settings', upgrade: 'h2c', 'http2-settings': 'AAMAAABk' }
    assert.equal((await visit(sides, { method: 'POST', headers, body: 'all of it' })).status, 200)
    assert.equal(sides.seen[0]?.body, 'all of it')
  })
})

suite('the answer of a sandbox’s server through a preview', () => {
  test('a sandbox’s server can set headers, but no cookies for other hosts or with a name of Alcove’s', async () => {
    await using sides = await startSides()
    sides.inside.call = (_request, response) => {
      response.writeHead(200, [
        'Access-Control-Allow-Origin',
        '*',
        'Strict-Transport-Security',
        'max-age=1',
        'Set-Cookie',
        'a=1; Domain=proxy.test; Path=/x; Secure',
        'Set-Cookie',
        'daytona-sandbox-auth-box-id=mine',
        'Set-Cookie',
        'alcove-preview-accepted-other=true; Domain=proxy.test',
        'Set-Cookie',
        '=alcove-preview-accepted-box-id=true',
        'Clear-Site-Data',
        '"cookies"',
        'Set-Cookie',
        'b=2',
      ])
      response.end()
    }
    const { headers } = await visit(sides)
    assert.equal(headers['access-control-allow-origin'], '*')
    assert.equal(headers['strict-transport-security'], 'max-age=1')
    assert.equal(headers['clear-site-data'], undefined, 'it would clear the cookies of every preview')
    assert.deepEqual(headers['set-cookie'], ['a=1; Path=/x; Secure', 'b=2'])
  })

  test('if previews share a host, a preview’s headers and cookies cannot affect other previews', async () => {
    await using sides = await startSides()
    const answer = { headers: {} as Record<string, string | string[]> }
    sides.inside.call = (_request, response) => {
      response.writeHead(302, answer.headers).end()
    }
    const ask = async (headers: typeof answer.headers) => {
      answer.headers = headers
      return (await visit(sides, { host: '127.0.0.1', path: '/preview/box-id/80/' })).headers
    }
    const headers = await ask({
      'clear-site-data': '"*"',
      'service-worker-allowed': '/',
      'strict-transport-security': 'max-age=1',
      'set-cookie': ['a=1; Path=/x', 'b=2; path=/; HttpOnly', 'c=3'],
    })
    for (const name of ['clear-site-data', 'service-worker-allowed', 'strict-transport-security']) {
      assert.equal(headers[name], undefined, name)
    }
    assert.deepEqual(headers['set-cookie'], [
      'a=1; Path=/preview/box-id/80/x',
      'b=2; HttpOnly; Path=/preview/box-id/80/',
      'c=3; Path=/preview/box-id/80/',
    ])
    for (const [location, seen] of [
      ['/login?x', '/preview/box-id/80/login?x'],
      ['/preview/box-id/80/login', '/preview/box-id/80/login'],
      ['http://127.0.0.1/login', 'http://127.0.0.1/preview/box-id/80/login'],
      ['https://other.test/login', 'https://other.test/login'],
      ['login', 'login'],
    ]) {
      assert.equal((await ask({ location: location! }))['location'], seen)
    }
  })

  test('a preview of a broken or hostile server gets 502, and the gate answers the next calls', async () => {
    await using sides = await startSides()
    for (const said of [
      '',
      'SSH-2.0-OpenSSH_9.2\r\n',
      'HTTP/1.1 000 Zero\r\nContent-Length: 0\r\n\r\n',
      'HTTP/1.1 099 Low\r\nContent-Length: 0\r\n\r\n',
      'HTTP/1.1 200 OK\r\nX: a\0b\r\n\r\n',
      `HTTP/1.1 200 OK\r\nX: ${'x'.repeat(100_000)}\r\n\r\n`,
      'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n',
      'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\nhello',
      'HTTP/1.1 200 \u0001\r\nContent-Length: 0\r\n\r\n',
      'HTTP/1.1 100 Continue\r\n\r\n',
    ]) {
      sides.insideSocket = (socket) => {
        socket.once('data', () => socket.end(said, 'latin1'))
      }
      const { status, text } = await visit(sides)
      assert.equal(status, 502, said.slice(0, 60))
      assert.match(JSON.parse(text).message, /port 3000/)
    }
    sides.insideSocket = undefined
    assert.equal((await visit(sides)).status, 200)
  })

  test('a preview of a server that sends endless interim answers (1xx) gets 502', async () => {
    await using sides = await startSides()
    sides.insideSocket = (socket) => {
      const goOn = () => {
        while (socket.write('HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(100)));
      }
      socket.on('drain', goOn).once('data', goOn)
    }
    assert.equal((await visit(sides)).status, 502)
  })

  test('an answer that the sandbox’s server breaks off also breaks off for the caller', async () => {
    await using sides = await startSides()
    sides.insideSocket = (socket) => {
      socket.once('data', () => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf'))
    }
    await assert.rejects(visit(sides))
  })

  test('a preview passes on only the promised length of an answer, and no bytes after it', async () => {
    await using sides = await startSides()
    const promised = 1_000_000
    sides.insideSocket = (socket) => {
      socket.once('data', () => {
        socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${promised}\r\n\r\n`)
        socket.end(`${'x'.repeat(promised)}HTTP/1.1 200 OK\r\nSet-Cookie: a=b\r\n\r\n`)
      })
    }
    for (let call = 0; call < 2; call++) assert.equal((await visit(sides)).text, 'x'.repeat(promised))
  })

  test('a preview’s answer without a length ends when the server’s connection ends', async () => {
    await using sides = await startSides()
    sides.insideSocket = (socket) => {
      socket.once('data', () => socket.end('HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\nall of it'))
    }
    assert.equal((await visit(sides)).text, 'all of it')
  })

  test('a preview’s answer arrives even if it comes before the whole request body was sent', async () => {
    await using sides = await startSides()
    sides.insideSocket = (socket) => {
      socket.once('data', () => {
        socket.pause()
        socket.write('HTTP/1.1 413 Too Much\r\nContent-Length: 8\r\n\r\ntoo much')
      })
    }
    const answer = await visit(sides, { method: 'POST', body: 'x'.repeat(8 * 1024 * 1024) })
    assert.deepEqual([answer.status, answer.text], [413, 'too much'])
  })

  test('a sandbox’s server notices that a preview’s caller has closed its connection', async () => {
    await using sides = await startSides()
    const reached = Promise.withResolvers<void>()
    const closed = Promise.withResolvers<void>()
    sides.inside.call = (_request, response) => {
      response.once('close', closed.resolve)
      response.write('first')
      reached.resolve()
    }
    const outgoing = request({ port: sides.port, headers: { host: previewHost }, agent: false }).end()
    outgoing.on('error', () => undefined)
    await reached.promise
    outgoing.destroy()
    await closed.promise
  })
})
