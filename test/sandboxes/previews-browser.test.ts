// Previews in a real browser, below a real domain name, over TLS. A page must not be able to call another sandbox's preview with
// the cookies of the page's visitor. A preview must work in a frame on another site.
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import type { BrowserContext, Page } from 'playwright-core'
import { type Box, createBox } from './box.ts'
import { domain, foreign, openBrowser } from './browser.ts'
import { type Platform, platform } from './harness.ts'

/**
 * A server whose preview the tests open. Its pages contain the server's name. The server records calls, accepts WebSockets and has
 * a service worker.
 */
const server = `
import base64, hashlib, http.server, sys
name, calls = sys.argv[1], []

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def log_message(self, *words): pass

    def answer(self, kind, body):
        self.send_response(200)
        self.send_header('Content-Type', kind)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def do_GET(self):
        if self.path == '/calls':
            return self.answer('text/plain', ' '.join(calls))
        calls.append('GET:' + self.path)
        if self.headers.get('Upgrade'):
            key = self.headers['Sec-WebSocket-Key'] + '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'
            self.send_response(101)
            self.send_header('Upgrade', 'websocket')
            self.send_header('Connection', 'Upgrade')
            self.send_header('Sec-WebSocket-Accept', base64.b64encode(hashlib.sha1(key.encode()).digest()).decode())
            self.end_headers()
            said = ('secret of ' + name).encode()
            self.wfile.write(bytes([129, len(said)]) + said)
            self.close_connection = True
        elif self.path == '/sw.js':
            self.answer('text/javascript', "onfetch = e => e.respondWith(new Response('taken by " + name + "'))")
        else:
            self.answer('text/html', '<p id=said>secret of ' + name + '</p>')

    def do_POST(self):
        calls.append('POST:' + self.path)
        self.rfile.read(int(self.headers.get('Content-Length', 0)))
        self.answer('text/html', '<p id=said>secret of ' + name + '</p>')

http.server.ThreadingHTTPServer(('127.0.0.1', 3000), Handler).serve_forever()
`

suite('previews in Chromium', () => {
  let alcove: Platform
  let surfing: Awaited<ReturnType<typeof openBrowser>>
  let victim: Box
  let attacker: Box
  let publicBox: Box
  let organizationId: string

  const serve = async (box: Box, name: string) => {
    await box.run(
      `cat > /tmp/server.py <<'END'\n${server}\nEND\nsetsid python3 /tmp/server.py ${name} >/tmp/log 2>&1 &`,
    )
    await box.run(
      'for i in $(seq 200); do curl -s -o /dev/null http://127.0.0.1:3000/calls && exit 0; sleep .1; done; exit 1',
    )
  }

  before(async () => {
    alcove = await platform()
    ;[victim, attacker, publicBox] = await Promise.all([
      createBox(alcove),
      createBox(alcove),
      createBox(alcove, { public: true }),
    ])
    organizationId = String(victim.record['organizationId'])
    await Promise.all([serve(victim, 'victim'), serve(attacker, 'attacker'), serve(publicBox, 'public')])
    surfing = await openBrowser(new URL(String(victim.record['toolboxProxyUrl'])))
  })
  after(async () => {
    await surfing?.[Symbol.asyncDispose]()
    for (const box of [victim, attacker, publicBox]) await box?.[Symbol.asyncDispose]()
    await alcove?.[Symbol.asyncDispose]()
  })

  const originOf = (sandbox: string) => `https://3000-${sandbox}.${domain}:${surfing.port}`
  const foreignPage = (frame: string) => `https://${foreign}:${surfing.port}/?frame=${encodeURIComponent(frame)}`
  const tokenOf = async (box: Box) =>
    String((await alcove.api('GET', `/sandbox/${box.id}/ports/3000/preview-url`)).body['token'])
  const addressOf = async (box: Box) => `${originOf(box.id)}/?DAYTONA_SANDBOX_AUTH_KEY=${await tokenOf(box)}`
  const callsOf = (box: Box) => box.run('curl -s http://127.0.0.1:3000/calls')

  const surf = async (see: (page: Page, context: BrowserContext) => Promise<void>) => {
    const context = await surfing.browser.newContext({ ignoreHTTPSErrors: true })
    context.setDefaultTimeout(20_000)
    try {
      await see(await context.newPage(), context)
    } finally {
      await context.close()
    }
  }

  /** Runs a test as a visitor of two previews: the visitor opens first the page of `victim`, then the page of `attacker`. */
  const visitBoth = (see: (page: Page, context: BrowserContext) => Promise<void>) =>
    surf(async (page, context) => {
      await page.goto(await addressOf(victim))
      assert.equal(await page.textContent('#said'), 'secret of victim')
      assert.equal(page.url(), `${originOf(victim.id)}/`)
      await page.goto(await addressOf(attacker))
      assert.equal(await page.textContent('#said'), 'secret of attacker')
      await see(page, context)
    })

  /** Calls `fetch` in the page `page`. Returns the answer, or a text that says that the browser refused the call. */
  const fetched = (page: Page, url: string, more: object = {}) =>
    page.evaluate(
      ([at, options]) =>
        fetch(at, options).then(
          (answer) => answer.text(),
          () => 'nothing',
        ),
      [url, { credentials: 'include', ...more }] as const,
    )

  test('a preview’s pages can call the preview with the visitor’s cookie; another sandbox’s pages cannot', async () => {
    await visitBoth(async (page) => {
      for (const more of [{}, { mode: 'no-cors' }, { method: 'POST', mode: 'no-cors', body: 'x' }]) {
        assert.doesNotMatch(await fetched(page, `${originOf(victim.id)}/fetched`, more), /secret/)
      }
      assert.match(await fetched(page, '/own'), /secret of attacker/)
    })
    assert.doesNotMatch(await callsOf(victim), /fetched/)
  })

  test('a form on a page of another sandbox cannot post to a preview as the visitor', async () => {
    await visitBoth(async (page) => {
      await Promise.all([
        page.waitForNavigation(),
        page.evaluate(`{
          const form = document.createElement('form')
          Object.assign(form, { method: 'post', action: '${originOf(victim.id)}/formed' })
          document.body.append(form)
          form.submit()
        }`),
      ])
      assert.match((await page.textContent('body')) ?? '', /401/)
    })
    assert.doesNotMatch(await callsOf(victim), /formed/)
  })

  test('a preview’s pages can open the preview’s WebSocket with the visitor’s cookie; other pages cannot', async () => {
    const hear = (page: Page, url: string) =>
      page.evaluate(
        (at) =>
          new Promise<string>((resolve) => {
            const socket = new WebSocket(at)
            socket.onmessage = ({ data }) => resolve(String(data))
            socket.onerror = () => resolve('nothing')
          }),
        url,
      )
    await visitBoth(async (page) => {
      const at = (box: Box) => `${originOf(box.id).replace('https', 'wss')}/socket`
      assert.equal(await hear(page, at(victim)), 'nothing')
      assert.equal(await hear(page, at(attacker)), 'secret of attacker')
    })
    assert.doesNotMatch(await callsOf(victim), /socket/)
  })

  test('a service worker controls only its own origin, and no other sandbox’s host or /preview path', async () => {
    await visitBoth(async (page, context) => {
      const install = (script: string) =>
        page.evaluate(
          `navigator.serviceWorker.register('${script}').then(() => navigator.serviceWorker.ready).then(() => 'ready', () => 'no')`,
        )
      assert.equal(await install('/sw.js'), 'ready')
      assert.equal(await install(`${originOf(victim.id)}/sw.js`), 'no')
      await page.goto(`${originOf(victim.id)}/`)
      assert.equal(await page.textContent('#said'), 'secret of victim')
      await page.goto(`${originOf(attacker.id)}/other`)
      assert.equal(await page.textContent('body'), 'taken by attacker')
      // At the victim's preview host, the path `/preview/ID/PORT/` with the attacker's id must not show the attacker's preview.
      const other = await context.newPage()
      const path = `/preview/${attacker.id}/3000/?DAYTONA_SANDBOX_AUTH_KEY=${await tokenOf(attacker)}`
      for (const origin of [`https://${victim.id}.${domain}:${surfing.port}`, originOf(victim.id)]) {
        await other.goto(origin + path)
        assert.doesNotMatch((await other.textContent('body')) ?? '', /secret of attacker/)
      }
    })
  })

  test('a frame in a page of another sandbox does not show a private preview', async () => {
    await visitBoth(async (page) => {
      await page.evaluate(`new Promise((resolve) => {
        const frame = document.createElement('iframe')
        frame.src = '${originOf(victim.id)}/framed'
        frame.onload = resolve
        document.body.append(frame)
      })`)
    })
    assert.doesNotMatch(await callsOf(victim), /framed/)
  })

  test('by a preview token, a frame on another site shows a private preview, which can make requests', async () => {
    await surf(async (page) => {
      await page.goto(foreignPage(await addressOf(victim)))
      const frame = page.frameLocator('#preview')
      assert.equal(await frame.locator('#said').textContent(), 'secret of victim')
      const own = page.frames().find((one) => one.url().startsWith(originOf(victim.id)))!
      assert.match(await own.evaluate(() => fetch('/own').then((answer) => answer.text())), /secret of victim/)
      // The cookie from the frame is valid only in frames on the foreign site. If the preview is opened directly, it gets no cookie
      // and answers 401.
      await page.goto(originOf(victim.id))
      assert.match((await page.textContent('body')) ?? '', /401/)
    })
  })

  test('a frame on another site shows a private preview by a signed URL', async () => {
    const signed = await alcove.api('GET', `/sandbox/${victim.id}/ports/3000/signed-preview-url?expiresInSeconds=300`)
    await surf(async (page) => {
      await page.goto(foreignPage(`${originOf(String(signed.body['token']))}/`))
      assert.equal(await page.frameLocator('#preview').locator('#said').textContent(), 'secret of victim')
    })
  })

  test('a frame on another site shows a public preview after the preview’s warning page', async () => {
    const warn = (previewWarningEnabled: boolean) =>
      alcove.api('POST', `/organizations/${organizationId}/preview-warning`, { previewWarningEnabled })
    assert.equal((await warn(true)).status, 204)
    try {
      await surf(async (page) => {
        await page.goto(foreignPage(`${originOf(publicBox.id)}/`))
        const frame = page.frameLocator('#preview')
        await frame.locator('button').click()
        assert.equal(await frame.locator('#said').textContent(), 'secret of public')
        await page.goto(originOf(publicBox.id))
        assert.equal(await page.textContent('h1'), 'You are about to see a preview')
      })
    } finally {
      await warn(false)
    }
  })

  test('the gate’s waiting page is replaced by the preview as soon as the server in the sandbox listens', async () => {
    await using late = await createBox(alcove)
    await surf(async (page) => {
      await page.goto(await addressOf(late))
      assert.equal(await page.textContent('h1'), 'Nothing listens on port 3000 yet')
      await serve(late, 'late')
      await page.waitForSelector('#said')
      assert.equal(await page.textContent('#said'), 'secret of late')
    })
  })
})
