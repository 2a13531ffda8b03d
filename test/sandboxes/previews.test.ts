// Tests previews and signed file URLs on a real server. The previews show a program that listens on 127.0.0.1 in a sandbox.
import assert from 'node:assert/strict'
import { createHash, createHmac } from 'node:crypto'
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { after, before, suite, test } from 'node:test'
import { WebSocket } from 'ws'
import { type Box, createBox } from './box.ts'
import { type Platform, platform } from './harness.ts'
import { connectTo } from './sdk-client.ts'

/**
 * A server for a preview. It answers with a description of the request, counts calls, can be slow, and returns WebSocket frames.
 */
const server = `
import base64, hashlib, http.server, json, os, threading

going = threading.Event()

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def log_message(self, *words):
        pass

    def answer(self, body):
        self.send_response(200)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        if self.path.startswith('/ws'):
            return self.echo()
        if self.path == '/go':
            going.set()
            return self.answer(b'went')
        if self.path == '/slow':
            self.send_response(200)
            self.send_header('Content-Type', 'text/event-stream')
            self.end_headers()
            self.wfile.write(b'data: first\\n\\n')
            self.wfile.flush()
            going.wait(120)
            self.wfile.write(b'data: last\\n\\n')
            self.close_connection = True
            return
        self.answer(json.dumps({'path': self.path, 'headers': {k.lower(): v for k, v in self.headers.items()}}).encode())

    def do_POST(self):
        left, seen = int(self.headers['Content-Length']), hashlib.sha256()
        while left > 0:
            piece = self.rfile.read(min(left, 1 << 16))
            left -= len(piece)
            seen.update(piece)
        self.answer(seen.hexdigest().encode())

    def echo(self):
        key = self.headers['Sec-WebSocket-Key'] + '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'
        self.send_response(101)
        self.send_header('Upgrade', 'websocket')
        self.send_header('Connection', 'Upgrade')
        self.send_header('Sec-WebSocket-Accept', base64.b64encode(hashlib.sha1(key.encode()).digest()).decode())
        self.end_headers()
        while True:
            head = self.rfile.read(2)
            if len(head) < 2 or head[0] & 15 == 8:
                break
            size = head[1] & 127
            mask, data = self.rfile.read(4), self.rfile.read(size)
            plain = bytes(b ^ mask[i % 4] for i, b in enumerate(data))
            self.wfile.write(bytes([129, size]) + plain)
        self.close_connection = True

http.server.ThreadingHTTPServer(('127.0.0.1', 3000), Handler).serve_forever()
`

type Answer = { status: number; headers: IncomingMessage['headers']; text: string }

suite('previews', () => {
  let alcove: Platform
  let box: Box
  let proxy: URL
  let token: string

  before(async () => {
    alcove = await platform()
    box = await createBox(alcove)
    proxy = new URL(String(box.record['toolboxProxyUrl']))
    await box.run(`cat > /tmp/server.py <<'END'\n${server}\nEND\nsetsid python3 /tmp/server.py >/tmp/server.log 2>&1 &`)
    const preview = await alcove.api('GET', `/sandbox/${box.id}/ports/3000/preview-url`)
    token = String(preview.body['token'])
    await box.run(
      'for i in $(seq 200); do curl -s -o /dev/null http://127.0.0.1:3000/ && exit 0; sleep .1; done; exit 1',
    )
  })
  after(async () => {
    await box?.[Symbol.asyncDispose]()
    await alcove?.[Symbol.asyncDispose]()
  })

  const hostOf = (sandbox: string, port = 3000) => `${port}-${sandbox}.localhost:${proxy.port}`

  const open = (path: string, headers: Record<string, string>, method = 'GET') =>
    request({ host: proxy.hostname, port: proxy.port, path, method, headers, agent: false })

  /** Calls a path of the preview by the preview's host name. If `host` is undefined, calls the gate by the gate's own address. */
  const ask = async (
    path: string,
    headers: Record<string, string> = {},
    { host = hostOf(box.id), method = 'GET', body }: { host?: string; method?: string; body?: Buffer } = {},
  ): Promise<Answer> => {
    const outgoing = open(path, { host, ...headers }, method)
    outgoing.end(body)
    const [answer] = (await once(outgoing, 'response')) as [IncomingMessage]
    let text = ''
    for await (const piece of answer.setEncoding('utf8')) text += piece
    return { status: answer.statusCode!, headers: answer.headers, text }
  }

  const asProxy = () => ({ host: proxy.host })
  const bearer = () => ({ authorization: `Bearer ${alcove.key}` })
  const withToken = () => ({ 'x-daytona-preview-token': token })
  const seenBy = (answer: Answer) => JSON.parse(answer.text) as { path: string; headers: Record<string, string> }

  test('a preview can be called by host name and by path; the server inside gets no credential of callers', async () => {
    for (const headers of [bearer(), withToken()] as Record<string, string>[]) {
      const named = await ask('/a?b=c', headers)
      assert.equal(named.status, 200, named.text)
      assert.equal(seenBy(named).path, '/a?b=c')
      const byPath = await ask(`/preview/${box.id}/3000/a?b=c`, headers, asProxy())
      assert.deepEqual([byPath.status, seenBy(byPath).path], [200, '/a?b=c'])
      assert.equal(seenBy(byPath).headers['x-forwarded-prefix'], `/preview/${box.id}/3000`)
      for (const { text } of [named, byPath]) assert.ok(!text.includes(alcove.key) && !text.includes(token))
      assert.equal(seenBy(named).headers['host'], hostOf(box.id))
    }
  })

  test('a preview host with a sandbox’s name redirects authorized callers to the host with the sandbox’s id', async () => {
    await using other = await createBox(alcove, { name: `shop-${Date.now()}` })
    const host = hostOf(String(other.record['name']))
    const { status, headers } = await ask('/a?b=c', bearer(), { host })
    assert.deepEqual([status, headers.location], [307, `//${hostOf(other.id)}/a?b=c`])
    assert.equal((await ask('/a', bearer(), { host, method: 'POST' })).status, 400)
    assert.equal((await ask('/a', {}, { host })).status, 401)
  })

  test('no sandbox name may look like an id or a token of a signed URL; preview hosts serve no /preview path', async () => {
    for (const name of [box.id, box.id.toUpperCase(), box.id.replaceAll('-', ''), 'abcdefghijklmn01']) {
      assert.equal((await alcove.api('POST', '/sandbox', { name })).status, 400, name)
    }
    assert.equal(
      (await ask(`/preview/${box.id}/3000/`, bearer(), { host: `${box.id}.localhost:${proxy.port}` })).status,
      404,
    )
  })

  test('with the label preview-host, a server inside gets `Host: localhost`, which many dev servers require', async () => {
    await alcove.api('PUT', `/sandbox/${box.id}/labels`, { labels: { 'preview-host': 'localhost' } })
    try {
      const called = async () => seenBy(await ask('/', bearer())).headers
      // Repeat the call, because the gate may use a cached answer about the sandbox for a second.
      for (let tries = 0; tries < 50 && (await called())['host'] !== 'localhost:3000'; tries++)
        await new Promise((resolve) => setTimeout(resolve, 100))
      const { host, 'x-forwarded-host': real } = await called()
      assert.deepEqual([host, real], ['localhost:3000', hostOf(box.id)])
    } finally {
      await alcove.api('PUT', `/sandbox/${box.id}/labels`, { labels: {} })
    }
  })

  test('the preview of port 2280 is the toolbox, which accepts a preview token for calls and WebSockets', async () => {
    const { body } = await alcove.api('GET', `/sandbox/${box.id}/ports/2280/preview-url`)
    const { host } = new URL(String(body['url']))
    const given = { 'x-daytona-preview-token': String(body['token']) }
    assert.equal((await ask('/work-dir', given, { host })).status, 200)
    assert.equal((await ask('/work-dir', {}, { host })).status, 401)
    const socket = new WebSocket(`ws://${proxy.host}/process/interpreter/execute`, { headers: { host, ...given } })
    await once(socket, 'open')
    socket.send(JSON.stringify({ code: 'print(6 * 7)' }))
    let said = ''
    socket.on('message', (text) => {
      said += String(text)
    })
    await once(socket, 'close')
    assert.match(said, /42/)
  })

  test('preview links that were made with a temporary API key stop working when the key is deleted', async () => {
    const expiresAt = new Date(Date.now() + 3_600_000).toISOString()
    const made = await alcove.api('POST', '/api-keys', { name: 'for-an-hour', permissions: [], expiresAt })
    await using daytona = connectTo({ url: alcove.url, key: String(made.body['value']) })
    const sandbox = await daytona.get(box.id)
    const link = await sandbox.getPreviewLink(3000)
    const signed = await sandbox.getSignedPreviewUrl(3000, 3600)
    const given = { 'x-daytona-preview-token': link.token }
    const toolbox = `/toolbox/${box.id}/work-dir?DAYTONA_SANDBOX_AUTH_KEY=${link.token}`
    const statuses = async () => [
      (await ask('/a', given, { host: new URL(link.url).host })).status,
      (await ask('/a', {}, { host: new URL(signed.url).host })).status,
      (await ask(toolbox, asProxy(), asProxy())).status,
      (await ask('/a', withToken())).status,
    ]
    assert.deepEqual(await statuses(), [200, 200, 200, 200])
    await alcove.api('DELETE', '/api-keys/for-an-hour')
    // Repeat the calls, because the gate may use a cached answer about the caller for a second.
    for (let tries = 0; tries < 50 && (await statuses()).slice(0, 3).some((status) => status === 200); tries++)
      await new Promise((resolve) => setTimeout(resolve, 100))
    assert.deepEqual(await statuses(), [401, 401, 401, 200])
  })

  test('a signed preview URL of port 2280 opens the toolbox without a credential, until the URL is revoked', async () => {
    const path = `/sandbox/${box.id}/ports/2280/signed-preview-url`
    const { body } = await alcove.api('GET', path)
    const { host } = new URL(String(body['url']))
    assert.equal((await ask('/work-dir', {}, { host })).status, 200)
    const other = (await alcove.api('GET', `/sandbox/${box.id}/ports/3000/signed-preview-url`)).body
    const wrong = `2280-${other['token']}.${host.slice(host.indexOf('.') + 1)}`
    assert.equal((await ask('/work-dir', {}, { host: wrong })).status, 401)
    await alcove.api('POST', `${path}/${body['token']}/expire`)
    for (let tries = 0; tries < 50 && (await ask('/work-dir', {}, { host })).status === 200; tries++)
      await new Promise((resolve) => setTimeout(resolve, 100))
    assert.equal((await ask('/work-dir', {}, { host })).status, 401)
  })

  test('a preview URL that the API returns works, and has the form of `proxyTemplateUrl` in GET /config', async () => {
    const { body } = await alcove.api('GET', `/sandbox/${box.id}/ports/3000/preview-url`)
    const { host, pathname } = new URL(String(body['url']))
    assert.equal((await ask(pathname, withToken(), { host })).status, 200)
    const config = (await alcove.api('GET', '/config')).body
    const fromTemplate = String(config['proxyTemplateUrl']).replace('{{PORT}}', '3000').replace('{{sandboxId}}', box.id)
    assert.equal(fromTemplate, body['url'])
  })

  test('a preview answers 401 without a valid credential, 502 if nothing listens, 403 for reserved ports', async () => {
    assert.equal((await ask('/')).status, 401)
    assert.equal((await ask('/', { authorization: 'Bearer dtn_wrong' })).status, 401)
    assert.equal((await ask('/', { 'x-daytona-preview-token': 'wrong' })).status, 401)
    const silent = await ask('/', bearer(), { host: hostOf(box.id, 3999) })
    assert.equal(silent.status, 502)
    assert.match(JSON.parse(silent.text).message, /Nothing listens on port 3999/)
    assert.equal((await ask('/', bearer(), { host: hostOf(box.id, 22_222) })).status, 403)
    assert.equal((await ask('/', bearer(), { host: hostOf('no-such-sandbox') })).status, 404)
  })

  test('everybody may call the previews of a public sandbox, but not the sandbox’s toolbox', async () => {
    await using open = await createBox(alcove, { public: true })
    assert.equal((await ask('/', {}, { host: hostOf(open.id) })).status, 502)
    await open.run(
      'mkdir /tmp/www && echo hi > /tmp/www/x && (cd /tmp/www && setsid python3 -m http.server --bind 127.0.0.1 3000 >/dev/null 2>&1 &)',
    )
    await open.run(
      'for i in $(seq 200); do curl -s -o /dev/null http://127.0.0.1:3000/ && exit 0; sleep .1; done; exit 1',
    )
    assert.equal((await ask('/x', {}, { host: hostOf(open.id) })).text, 'hi\n')
    assert.equal((await ask(`/toolbox/${open.id}/work-dir`, {}, asProxy())).status, 401)
  })

  test('a preview token in the query becomes a cookie, and a redirect leads to the URL without the token', async () => {
    const { status, headers } = await ask(`/page?a=b&DAYTONA_SANDBOX_AUTH_KEY=${token}`, { accept: 'text/html' })
    assert.deepEqual([status, headers.location], [303, '/page?a=b'])
    const [cookie = ''] = headers['set-cookie'] ?? []
    assert.match(cookie, /; HttpOnly; SameSite=Lax$/)
    assert.doesNotMatch(cookie, /domain/i)
    const page = await ask('/page?a=b', { cookie: `theirs=1; ${cookie.split(';')[0]}` })
    assert.deepEqual([page.status, seenBy(page).headers['cookie']], [200, 'theirs=1'])
    const direct = await ask(`/?DAYTONA_SANDBOX_AUTH_KEY=${token}`)
    assert.deepEqual([direct.status, seenBy(direct).path], [200, '/'])
  })

  test('a signed preview URL opens one port’s preview without a credential until it is revoked or expires', async () => {
    const sign = async (seconds: number) =>
      (await alcove.api('GET', `/sandbox/${box.id}/ports/3000/signed-preview-url?expiresInSeconds=${seconds}`)).body
    const signed = await sign(600)
    const given = String(signed['token'])
    const { host } = new URL(String(signed['url']))
    const named = await ask('/x', {}, { host })
    assert.equal(named.status, 200)
    assert.ok(!named.text.includes(given))
    assert.equal((await ask(`/preview/${given}/3000/x`, {}, asProxy())).status, 200)
    assert.equal((await ask('/x', {}, { host: hostOf(given, 3001) })).status, 401)
    await alcove.api('POST', `/sandbox/${box.id}/ports/3000/signed-preview-url/${given}/expire`)
    const short = new URL(String((await sign(1))['url'])).host
    for (const ended of [host, short]) await untilStatus(() => ask('/x', {}, { host: ended }), 401)
  })

  test('a WebSocket to a preview can be opened by host name with an API key, or by path with a preview token', async () => {
    const url = `ws://${proxy.host}`
    for (const open of [
      () => new WebSocket(`${url}/ws`, { headers: { host: hostOf(box.id), ...bearer() } }),
      () => new WebSocket(`${url}/preview/${box.id}/3000/ws?DAYTONA_SANDBOX_AUTH_KEY=${token}`),
    ]) {
      const socket = open()
      await once(socket, 'open')
      socket.send('hello')
      assert.equal(String((await once(socket, 'message'))[0]), 'hello')
      socket.close()
      await once(socket, 'close')
    }
    const refused = new WebSocket(`${url}/preview/${box.id}/3000/ws`)
    const [error] = await once(refused, 'error')
    assert.match(String(error), /401/)
  })

  test('an upload of 50 MiB to a server in a sandbox, through the server’s preview, arrives complete', async () => {
    const body = Buffer.alloc(50 * 1024 * 1024)
    for (let at = 0; at < body.length; at += 4) body.writeUInt32LE((at * 2654435761) >>> 0, at)
    const { text } = await ask('/', bearer(), { method: 'POST', body })
    assert.equal(text, createHash('sha256').update(body).digest('hex'))
  })

  test('a preview forwards each part of a slow response before the server sends the next part', async () => {
    const outgoing = open('/slow', { host: hostOf(box.id), ...bearer() }).end()
    const [answer] = (await once(outgoing, 'response')) as [IncomingMessage]
    const pieces = answer.setEncoding('utf8')[Symbol.asyncIterator]()
    assert.equal((await pieces.next()).value, 'data: first\n\n')
    // The server in the sandbox sends the last part of `/slow` only after this request. So the gate has passed on the first part
    // without waiting for the last.
    assert.equal((await ask('/go', bearer())).text, 'went')
    assert.equal((await pieces.next()).value, 'data: last\n\n')
    assert.equal((await pieces.next()).done, true)
  })

  test('at every start, a sandbox gets a new preview token', async () => {
    await using other = await createBox(alcove)
    const tokenNow = async () =>
      String((await alcove.api('GET', `/sandbox/${other.id}/ports/80/preview-url`)).body['token'])
    const first = await tokenNow()
    await alcove.api('POST', `/sandbox/${other.id}/stop?force=true`)
    await untilState(other.id, 'stopped')
    await alcove.api('POST', `/sandbox/${other.id}/start`)
    await untilState(other.id, 'started')
    const at = (preview: string) => ask('/', { 'x-daytona-preview-token': preview }, { host: hostOf(other.id, 80) })
    assert.equal((await at(first)).status, 401)
    assert.equal((await at(await tokenNow())).status, 502)
  })

  test('a signed file URL works until the signing key changes', async () => {
    const sign = (key: string, path: string, expires: number) => {
      const mac = createHmac('sha256', key).update(`v1:files:GET:${path}:${expires}`).digest('base64url')
      return `/toolbox/${box.id}/files/download?${new URLSearchParams({ path, expires: String(expires), signature: `v1_${mac}` })}`
    }
    const keyNow = async () => String((await alcove.api('GET', `/sandbox/${box.id}/signing-key`)).body)
    const key = await keyNow()
    await box.run('echo signed > /tmp/signed')
    const good = sign(key, '/tmp/signed', Math.floor(Date.now() / 1000) + 600)
    const { status, text } = await ask(good, {}, asProxy())
    assert.deepEqual([status, text], [200, 'signed\n'])
    assert.equal((await ask(good.replace('signed&', 'other&'), {}, asProxy())).status, 401)
    assert.equal((await ask(sign(key, '/tmp/signed', 1), {}, asProxy())).status, 401)
    await alcove.api('POST', `/sandbox/${box.id}/signing-key/rotate`)
    await untilStatus(() => ask(good, {}, asProxy()), 401)
    assert.equal((await ask(sign(await keyNow(), '/tmp/signed', 0), {}, asProxy())).status, 200)
  })

  /**
   * Repeats a call until its status is as expected. The gate may use a cached answer about the caller's access for a second.
   */
  const untilStatus = async (call: () => Promise<Answer>, status: number) => {
    for (let tries = 0; tries < 100; tries++) {
      if ((await call()).status === status) return
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
    assert.fail(`never answered ${status}`)
  }

  const untilState = async (id: string, state: string) => {
    for (let tries = 0; tries < 300; tries++) {
      if ((await alcove.api('GET', `/sandbox/${id}`)).body['state'] === state) return
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
    assert.fail(`never ${state}`)
  }
})
