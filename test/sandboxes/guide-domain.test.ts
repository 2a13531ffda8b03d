// Tests docs/guides/domain.md, on previews under a domain. Runs both reverse proxies of the guide, with the guide's configuration.
// The Alcove server behind these proxies has the environment variables of the guide.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { json } from 'node:stream/consumers'
import { after, before, suite, test } from 'node:test'
import { WebSocket } from 'ws'
import { until } from './box.ts'
import { addressedTo, blocksOf, programsOf, readPage, runProgram } from './guide.ts'
import { type Platform, platform } from './harness.ts'
import { type ReverseProxy, startCaddy, startNginx } from './reverse-proxy.ts'

const page = readPage('docs/guides/domain.md')
const programs = programsOf(page)
const api = 'alcove.example.com'
const gate = 'sandboxes.example.net'

/** A Python server for a preview. `/slow` sends its last piece only after a call to `/go`. Other paths show the call's headers. */
const inside = `
import http.server, json, threading
going = threading.Event()
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        if self.path == '/go': going.set()
        if self.path != '/slow':
            return self.wfile.write(json.dumps({k.lower(): v for k, v in self.headers.items()}).encode())
        self.wfile.write(b'first')
        self.wfile.flush()
        going.wait(60)
        self.wfile.write(b'last')
    def log_message(self, *words): pass
http.server.ThreadingHTTPServer(('127.0.0.1', 3000), Handler).serve_forever()
`

suite('the guide on previews behind a domain', () => {
  let server: Platform
  const desk = mkdtempSync(join(tmpdir(), 'alcove-domain-'))
  const printed = (name: string) => addressedTo(server, programs.get(name) ?? assert.fail(`the guide has no ${name}`))

  before(async () => {
    const [, variables = ''] = /^(ALCOVE_PUBLIC_URL=.*) \.\/alcove up$/m.exec(page) ?? []
    const env = Object.fromEntries(variables.split(' ').map((pair) => pair.split('=') as [string, string]))
    assert.equal(Object.keys(env).length, 3)
    server = await platform({ own: true, image: 'small', env })
    const { code, output } = await runProgram('sh', ['-ec', printed('certificate.sh')], { cwd: desk })
    assert.equal(code, 0, output)
  })
  after(async () => {
    rmSync(desk, { recursive: true, force: true })
    await server?.[Symbol.asyncDispose]()
  })

  const proxies: Record<string, (directory: string, configuration: (name: string) => string) => Promise<ReverseProxy>> =
    {
      nginx: (directory, configuration) =>
        startNginx(directory, api, configuration('alcove.conf'), join(desk, 'alcove.crt')),
      Caddy: (directory, configuration) => startCaddy(directory, api, configuration('Caddyfile')),
    }

  for (const [name, start] of Object.entries(proxies))
    suite(name, () => {
      let proxy: ReverseProxy
      const directory = join(desk, name)
      before(async () => {
        mkdirSync(directory)
        proxy = await start(directory, (file) => printed(file).replaceAll(/\/etc\/\w+\/alcove\./g, `${desk}/alcove.`))
      })
      after(() => proxy?.[Symbol.asyncDispose]())

      const callJson = async (host: string, path: string, method = 'GET', body?: object) => {
        const headers = { authorization: `Bearer ${server.key}`, 'content-type': 'application/json' }
        const given = body === undefined ? {} : { body: JSON.stringify(body) }
        const answer = await proxy.call({ host, path, method, headers, ...given })
        assert.equal(answer.statusCode, 200)
        return (await json(answer)) as Record<string, string>
      }

      test(`behind the reverse proxy ${name}, check.sh of the guide calls a preview and prints what the guide shows`, async () => {
        writeFileSync(join(directory, '.curlrc'), `connect-to = "::127.0.0.1:${proxy.port}"\ninsecure\n`)
        const { code, output } = await runProgram('sh', ['-ec', printed('check.sh')], {
          cwd: directory,
          env: { CURL_HOME: directory },
        })
        assert.equal(code, 0, output)
        const shown = blocksOf(page.slice(page.indexOf('## 5.')), 'text')
        assert.deepEqual([output.replace(/3000-[^.]+/, '3000-ID')], shown)
      })

      test(`behind the reverse proxy ${name}, previews get the real host and scheme and can stream; terminals work`, async () => {
        const { id } = await callJson(api, '/api/sandbox', 'POST', { public: true })
        try {
          await callJson(gate, `/toolbox/${id}/process/execute`, 'POST', {
            command: `cat >server.py <<'END'\n${inside}\nEND\nsetsid python3 server.py >/dev/null 2>&1 &
              for i in $(seq 100); do python3 -c 'import socket; socket.create_connection(("127.0.0.1", 3000))' && exit 0; done; exit 1`,
          })
          const preview = { host: `3000-${id}.${gate}` }
          const spoofed = { 'x-forwarded-for': '198.51.100.99', 'x-forwarded-proto': 'gopher' }
          const seen = (await json(await proxy.call({ ...preview, path: '/', headers: spoofed }))) as Record<
            string,
            string
          >
          assert.equal(seen['host'], preview.host)
          assert.equal(seen['x-forwarded-proto'], 'https')
          assert.doesNotMatch(seen['x-forwarded-for'] ?? '', /198\.51\.100\.99/)

          const slow = await proxy.call({ ...preview, path: '/slow' })
          const pieces = slow.setEncoding('utf8')[Symbol.asyncIterator]()
          assert.equal((await pieces.next()).value, 'first')
          // The server in the sandbox sends the last piece only after this call. So the proxy has passed on the first piece without
          // waiting for the last piece.
          ;(await proxy.call({ ...preview, path: '/go' })).resume()
          assert.equal((await pieces.next()).value, 'last')

          const address = `wss://127.0.0.1:${proxy.port}/toolbox/${id}/process/pty/create-connect?id=screen`
          const headers = { host: gate, authorization: `Bearer ${server.key}` }
          const options: WebSocket.ClientOptions & { servername: string } = {
            ...proxy.trust,
            servername: gate,
            headers,
          }
          const terminal = new WebSocket(address, options)
          let screen = ''
          terminal.on('message', (data) => (screen += String(data)))
          await once(terminal, 'open')
          terminal.send('echo $((6 * 7))nd\n')
          await until('the terminal answers', () => screen.includes('42nd'))
          terminal.terminate()
        } finally {
          await callJson(api, `/api/sandbox/${id}`, 'DELETE')
        }
      })
    })
})
