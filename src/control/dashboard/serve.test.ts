import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { after, before, suite, test } from 'node:test'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import { startControl, type TestControl } from '#test/control/harness.ts'
import { testSettings } from '#test/control/test-settings.ts'

const { proxyUrl } = testSettings
const farGate = 'https://gate.elsewhere.example'
const html = 'text/html,application/xhtml+xml,*/*;q=0.8'
const script = 'console.log("the dashboard")\n'.repeat(100)

/** Writes files like the files of a dashboard that `up` has built. */
const writeBuild = (directory: string) => {
  mkdirSync(join(directory, 'assets'), { recursive: true })
  const page = '<!doctype html><meta nonce="__CSP_NONCE__"><script nonce="__CSP_NONCE__"></script>'
  writeFileSync(join(directory, 'index.html'), page)
  writeFileSync(join(directory, 'icon.svg'), '<svg xmlns="http://www.w3.org/2000/svg"/>')
  writeFileSync(join(directory, 'secret.key'), 'not for browsers')
  symlinkSync('/etc/passwd', join(directory, 'assets', 'passwd.txt'))
  writeFileSync(join(directory, 'assets', 'index-abc.js'), script)
  writeFileSync(join(directory, 'assets', 'index-abc.js.br'), brotliCompressSync(script))
  writeFileSync(join(directory, 'assets', 'index-abc.js.gz'), gzipSync(script))
}

const policyOf = (header: unknown): Record<string, string> =>
  Object.fromEntries(
    String(header)
      .split('; ')
      .map((part) => [part.split(' ')[0], part.split(' ').slice(1).join(' ')]),
  )

suite('the dashboard', () => {
  let scratch: string
  let directory: string
  let app: TestControl

  const ask = async (url: string, headers: Record<string, string> = {}, method: 'GET' | 'HEAD' | 'POST' = 'GET') => {
    const reply = await app.app.server.inject({ method, url, headers })
    return { status: reply.statusCode, headers: reply.headers, text: reply.body, bytes: reply.rawPayload }
  }

  before(async () => {
    scratch = mkdtempSync(join(tmpdir(), 'alcove-dashboard-'))
    directory = join(scratch, 'build')
    writeBuild(directory)
    app = await startControl({ settings: { dashboardDirectory: directory } })
    // An organization chooses this URL. The header Content-Security-Policy goes to all users, and must not contain this URL.
    const url = `${farGate}/a;script-src 'unsafe-inline'`
    await app.database.sql`
      insert into regions (id, name, region_type, proxy_url) values ('far', 'far', 'shared', ${url})`
  })
  after(async () => {
    await app?.[Symbol.asyncDispose]()
    rmSync(scratch, { recursive: true, force: true })
  })

  test('GET / redirects browsers to the dashboard and keeps the query of the URL; other clients get 404', async () => {
    const browser = await ask('/?error=link_pending&x=//evil.example', { accept: html })
    assert.deepEqual(
      [browser.status, browser.headers.location],
      [302, '/dashboard/?error=link_pending&x=//evil.example'],
    )
    for (const headers of [{}, { accept: 'application/json' }, { accept: '*/*' }] as Record<string, string>[]) {
      const { status, text } = await ask('/', headers)
      assert.deepEqual([status, JSON.parse(text).code], [404, 'NOT_FOUND'])
    }
    assert.equal((await ask('/api', { accept: html })).status, 404)
    assert.equal((await ask('/', { accept: html }, 'POST')).status, 404)
  })

  test('each path below /dashboard/ that names no file returns the dashboard’s page, which is never cached', async () => {
    for (const path of [
      '',
      'sandboxes',
      'sandboxes/a%2Fb/files',
      'index.html',
      '..%2f..%2fetc%2fpasswd',
      '%00',
      'x.js',
    ]) {
      const { status, headers, text } = await ask(`/dashboard/${path}`)
      assert.equal(status, 200, path)
      assert.match(text, /^<!doctype html>/)
      assert.deepEqual(
        [headers['cache-control'], headers['content-type'], headers['etag']],
        ['no-store', 'text/html; charset=utf-8', undefined],
      )
    }
    const { status, headers } = await ask('/dashboard?a=1', { accept: html })
    assert.deepEqual([status, headers.location], [302, '/dashboard/?a=1'])
    assert.equal((await ask('/dashboard/', {}, 'POST')).status, 404)
    assert.equal((await ask('/api/dashboard/')).status, 404)
    const head = await ask('/dashboard/', {}, 'HEAD')
    assert.deepEqual([head.status, head.text], [200, ''])
  })

  test('each dashboard page has a new nonce, and may connect only to this server, its gate and the issuer', async () => {
    const [one, other] = [await ask('/dashboard/'), await ask('/dashboard/x')]
    const policy = policyOf(one.headers['content-security-policy'])
    const [, nonce = ''] = /'nonce-([^']+)'/.exec(policy['style-src'] ?? '') ?? []
    assert.equal(Buffer.from(nonce, 'base64').length, 16)
    assert.ok(one.text.includes(`<script nonce="${nonce}">`) && !one.text.includes('__'))
    assert.ok(!other.text.includes(nonce))
    const socket = (gate: string) => gate.replace(/^http/, 'ws')
    const { 'connect-src': connections, ...others } = policy
    assert.deepEqual(connections?.split(' ').sort(), ["'self'", app.issuer.url, proxyUrl, socket(proxyUrl)].sort())
    assert.deepEqual(others, {
      'default-src': "'none'",
      'script-src': "'self'",
      'style-src': `'self' 'nonce-${nonce}'`,
      'img-src': "'self' data: blob:",
      'font-src': "'self'",
      'frame-ancestors': "'none'",
      'base-uri': "'none'",
      'form-action': "'self'",
      'object-src': "'none'",
    })
    for (const [name, value] of [
      ['referrer-policy', 'no-referrer'],
      ['x-content-type-options', 'nosniff'],
      ['cross-origin-opener-policy', 'same-origin'],
    ] as const)
      assert.equal(one.headers[name], value)
  })

  test('a dashboard file has its type, an encoding that the browser accepts, and may be cached forever', async () => {
    const path = '/dashboard/assets/index-abc.js'
    const plain = await ask(path)
    assert.deepEqual([plain.status, plain.text], [200, script])
    assert.equal(plain.headers['content-type'], 'text/javascript; charset=utf-8')
    assert.equal(plain.headers['cache-control'], 'public, max-age=31536000, immutable')
    assert.equal(plain.headers['x-content-type-options'], 'nosniff')
    for (const [accepted, encoding, bytes] of [
      ['gzip, deflate, br', 'br', brotliCompressSync(script)],
      ['gzip', 'gzip', gzipSync(script)],
      ['br;q=0, GZIP;q=0.5', 'gzip', gzipSync(script)],
      ['zstd, identity', undefined, Buffer.from(script)],
    ] as const) {
      const reply = await ask(path, { 'accept-encoding': accepted })
      assert.equal(reply.headers['content-encoding'], encoding)
      assert.deepEqual(reply.bytes, bytes)
      assert.match(String(reply.headers['vary']), /Accept-Encoding/)
      const again = { 'accept-encoding': accepted, 'if-none-match': `"x", W/${reply.headers.etag}` }
      const kept = await ask(path, again)
      assert.deepEqual([kept.status, kept.text, kept.headers['etag']], [304, '', reply.headers['etag']])
    }
    const head = await ask(path, {}, 'HEAD')
    assert.deepEqual([head.text, head.headers['content-length']], ['', String(script.length)])
    // Control ignores the header `Range` and answers with the whole file, which HTTP allows.
    assert.equal((await ask(path, { range: 'bytes=0-3' })).status, 200)
    const icon = await ask('/dashboard/icon.svg')
    assert.deepEqual(
      [icon.headers['content-type'], icon.headers['cache-control'], icon.headers['content-security-policy']],
      ['image/svg+xml; charset=utf-8', 'no-cache', "default-src 'none'; frame-ancestors 'none'"],
    )
  })

  test('only files of the dashboard’s build are served: no symbolic links, unknown file types or other files', async () => {
    for (const path of [
      'assets/unknown.js',
      'assets/passwd.txt',
      'assets/index-abc.js.br/',
      'assets//index-abc.js',
      'assets/constructor',
    ])
      assert.equal((await ask(`/dashboard/${path}`)).status, 404, path)
    for (const path of ['secret.key', '__proto__', `${'a/'.repeat(4000)}x`])
      assert.match((await ask(`/dashboard/${path}`)).text, /^<!doctype html>/, path)
  })

  test('a malformed request, which no browser sends, is never redirected to another site', async () => {
    const { port } = new URL(await app.listen())
    const send = async (line: string, host = 'control.test:3000') => {
      const socket = connect(Number(port), '127.0.0.1')
      await once(socket, 'connect')
      socket.write(`GET ${line} HTTP/1.1\r\nHost: ${host}\r\nAccept: text/html\r\nConnection: close\r\n\r\n`)
      return await text(socket)
    }
    for (const line of [
      '//evil.example/',
      '/\\evil.example',
      '/dashboard//evil.example',
      'http://evil.example/dashboard',
      'http://evil.example/',
      '/?\x80\xff',
      '/dashboard?%0d%0aset-cookie:%20a=b',
      '/dashboard/%zz',
      '/dashboard/assets/../../../../etc/passwd',
      '/dashboard/assets/%2e%2e/secret.key',
      `/dashboard/?${'x'.repeat(12_000)}`,
    ]) {
      const answer = await send(line)
      assert.match(answer, /^HTTP\/1\.1 (?:200|302|400|404|414|431) /, line)
      const location = /^location: (.*)\r$/im.exec(answer)?.[1]
      assert.ok(location === undefined || location.startsWith('/dashboard/'), `${line} leads to ${location}`)
      assert.doesNotMatch(answer, /^set-cookie|root:/im)
    }
    for (const host of ['evil.example', 'localhost:3000', '127.0.0.1:3000'])
      assert.doesNotMatch(await send('/dashboard/', host), /^location/im)
  })

  test('dashboard pages count towards the rate limit for anonymous calls; files that the pages load do not', async () => {
    const rateLimits = { anonymous: { limit: 2, ttlSeconds: 60 } }
    await using limited = await startControl({ settings: { dashboardDirectory: directory, rateLimits } })
    const get = async (url: string) => (await limited.app.server.inject({ url })).statusCode
    assert.deepEqual([await get('/dashboard/'), await get('/dashboard/')], [200, 200])
    for (let n = 0; n < 40; n += 1) assert.equal(await get('/dashboard/assets/index-abc.js'), 200)
    assert.equal(await get('/dashboard/'), 429)
  })

  test('while the dashboard is not built, `/dashboard/` shows why; after the build, it serves the pages', async () => {
    const coming = join(scratch, 'coming')
    const settings = { dashboardDirectory: coming, publicUrl: 'http://127.0.0.1:3000' }
    await using other = await startControl({ settings })
    const get = (url: string, host = '127.0.0.1:3000') => other.app.server.inject({ url, headers: { host } })
    const early = await get('/dashboard/')
    assert.deepEqual(
      [early.statusCode, early.headers['refresh'], early.headers['cache-control']],
      [503, '2', 'no-store'],
    )
    assert.match(early.body, /being built/)
    writeFileSync(`${coming}.failed`, 'no space left <b>here</b>\n')
    const failed = await get('/dashboard/')
    assert.deepEqual([failed.statusCode, failed.headers['refresh']], [503, undefined])
    assert.match(failed.body, /could not be built: no space left &lt;b&gt;here/)
    assert.equal((await get('/dashboard/assets/index-abc.js')).statusCode, 503)
    writeBuild(coming)
    assert.equal((await get('/dashboard/')).statusCode, 200)
    // Users can sign in only at the public URL, here http://127.0.0.1:3000. So control redirects browsers from `localhost`.
    const local = await get('/dashboard/sandboxes?x=1', 'localhost:3000')
    assert.deepEqual([local.statusCode, local.headers.location], [302, 'http://127.0.0.1:3000/dashboard/sandboxes?x=1'])
    assert.equal((await get('/dashboard/', 'evil.example')).statusCode, 200)
  })
})
