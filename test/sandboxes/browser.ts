// Debian's Chromium for tests of previews. It opens previews through a reverse proxy with TLS, below a domain that only the tests
// use.
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { type IncomingMessage, request, type ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import { type AddressInfo, connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import { type Browser, chromium } from 'playwright-core'

/** The domain of the previews. A command-line option tells the browser the domain's address, so it asks no DNS server. */
export const domain = 'preview.example.test'
/** Host name of a web site that does not belong to Alcove. The pages of this site show previews in frames. */
export const foreign = 'foreign.example.net'

const makeCertificate = () => {
  const directory = mkdtempSync(join(tmpdir(), 'alcove-browser-'))
  try {
    const [key, cert] = [join(directory, 'key'), join(directory, 'cert')]
    execFileSync(
      'openssl',
      ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2'].concat([
        '-subj',
        `/CN=${domain}`,
        '-keyout',
        key,
        '-out',
        cert,
      ]),
      { stdio: 'ignore' },
    )
    return { key: readFileSync(key), cert: readFileSync(cert) }
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

/**
 * Starts a TLS proxy for every host name. The host `foreign` answers with a page that has a frame. The query parameter `frame`
 * gives the URL in the frame. All other calls go to the gate.
 */
const startTls = async (proxy: URL) => {
  const server = createServer(makeCertificate())
  const sockets = new Set<Duplex>()
  const to = { host: proxy.hostname, port: Number(proxy.port) }
  const onward = ({ headers }: IncomingMessage) => ({ ...headers, 'x-forwarded-proto': 'https' })
  const frame = ({ url = '/' }: IncomingMessage, response: ServerResponse) => {
    const framed = new URL(url, `https://${foreign}`).searchParams.get('frame')
    response.writeHead(200, { 'content-type': 'text/html' })
    response.end(framed === null ? '<p>foreign</p>' : `<iframe id="preview" src="${encodeURI(framed)}"></iframe>`)
  }
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  server.on('request', (incoming, response) => {
    if (incoming.headers.host?.startsWith(foreign)) return frame(incoming, response)
    const outgoing = request({ ...to, method: incoming.method, path: incoming.url, headers: onward(incoming) })
    outgoing.on('response', (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.rawHeaders)
      answer.pipe(response)
    })
    outgoing.on('error', () => response.destroy())
    incoming.pipe(outgoing)
  })
  server.on('upgrade', (incoming, socket: Duplex, head: Buffer) => {
    const upstream = connect(to.port, to.host)
    const lines = Object.entries(onward(incoming)).map(([name, value]) => `${name}: ${value}`)
    upstream.write(`GET ${incoming.url} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`)
    upstream.write(head)
    upstream.pipe(socket).pipe(upstream)
    for (const [one, other] of [[socket, upstream] as const, [upstream, socket] as const])
      one.on('error', () => other.destroy()).once('close', () => other.destroy())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    close: async () => {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

type Surfing = AsyncDisposable & { browser: Browser; port: number }

export const openBrowser = async (proxy: URL): Promise<Surfing> => {
  const tls = await startTls(proxy)
  try {
    const browser = await chromium.launch({
      executablePath: '/usr/bin/chromium',
      args: [
        ...['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-sync'],
        ...['--disable-background-networking', '--disable-component-update', '--ignore-certificate-errors'],
        `--host-resolver-rules=MAP *.${domain} 127.0.0.1,MAP ${domain} 127.0.0.1,MAP ${foreign} 127.0.0.1,MAP * ~NOTFOUND,EXCLUDE 127.0.0.1`,
      ],
    })
    return {
      browser,
      port: tls.port,
      async [Symbol.asyncDispose]() {
        await browser.close()
        await tls.close()
      },
    }
  } catch (error) {
    await tls.close()
    throw error
  }
}
