// For tests: an HTTPS server for HTTP/1.1, HTTP/2 and WebSockets. The server answers with what it has received.
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { createSecureServer, type Http2ServerRequest, type Http2ServerResponse } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { WebSocketServer } from 'ws'
import type { Certified } from '#src/kit/certificate.ts'

export type Received = { method: string; path: string; version: string; headers: [string, string][]; body: string }

const isPseudo = (name: string) => name.startsWith(':')

const pairsOf = (raw: readonly string[]): [string, string][] =>
  Array.from(
    { length: raw.length / 2 },
    (_, at) => [raw[2 * at] ?? '', raw[2 * at + 1] ?? ''] as [string, string],
  ).filter(([name]) => !isPseudo(name))

/**
 * Paths that clients of package registries and git repositories request, with the answers. Each request needs the credential
 * `Bearer the-real-value` or `me:the-real-value`.
 */
const places: Record<string, { type: string; body: string }> = {
  '/git/info/refs': { type: 'text/plain', body: `${'a'.repeat(40)}\trefs/heads/main\n` },
  '/git/HEAD': { type: 'text/plain', body: 'ref: refs/heads/main\n' },
  '/npm/pkg': {
    type: 'application/json',
    body: JSON.stringify({
      name: 'pkg',
      'dist-tags': { latest: '1.2.3' },
      versions: {
        '1.2.3': { name: 'pkg', version: '1.2.3', dist: { tarball: 'https://api.test/pkg.tgz', shasum: '' } },
      },
    }),
  },
  '/v2/': { type: 'application/json', body: '{}' },
  '/v2/pkg/manifests/1': {
    type: 'application/vnd.oci.image.manifest.v1+json',
    body: JSON.stringify({ schemaVersion: 2, mediaType: 'application/vnd.oci.image.manifest.v1+json' }),
  },
  '/simple/pkg/': { type: 'text/html', body: '<a href="/pkg-1.2.3-py3-none-any.whl">pkg-1.2.3-py3-none-any.whl</a>' },
}
const accepted = ['Bearer the-real-value', `Basic ${Buffer.from('me:the-real-value').toString('base64')}`]

const answer = async (request: Http2ServerRequest, response: Http2ServerResponse) => {
  response.setHeader('alt-svc', 'h3=":443"')
  if (request.url.startsWith('/stream')) {
    response.setHeader('trailer', 'x-end')
    response.writeHead(200)
    // The HTTP/2 type of `response` does not declare the method `flushHeaders`. Over HTTP/1.1, `response` is a `ServerResponse`,
    // which has this method.
    ;(response as unknown as ServerResponse).flushHeaders()
    request.pipe(response, { end: false })
    request.on('end', () => {
      response.addTrailers({ 'x-end': 'yes' })
      response.end()
    })
    return
  }
  const place = places[request.url.replace(/\?.*$/, '')]
  if (place !== undefined) {
    const isKnown = accepted.includes(request.headers.authorization ?? '')
    response.writeHead(isKnown ? 200 : 401, { 'content-type': place.type, 'www-authenticate': 'Basic realm="x"' })
    response.end(isKnown ? place.body : '')
    return
  }
  let body = ''
  request.setEncoding('utf8')
  for await (const chunk of request) body += chunk
  const { method, url: path, httpVersion: version, rawHeaders } = request
  response.setHeader('content-type', 'application/json')
  response.end(JSON.stringify({ method, path, version, headers: pairsOf(rawHeaders), body } satisfies Received))
}

export const startFarServer = async (certified: Certified, listen: { host: string; port: number }) => {
  const server = createSecureServer({ allowHTTP1: true, cert: certified.certificate, key: certified.privateKey })
  const sockets = new WebSocketServer({ noServer: true })
  server.on('request', (request, response) => void answer(request, response).catch(() => response.destroy()))
  server.on('upgrade', (request, socket, head) =>
    sockets.handleUpgrade(request as never, socket as never, head, (web) => {
      web.send(JSON.stringify(pairsOf(request.rawHeaders)))
      web.on('message', (data) => web.send(String(data)))
    }),
  )
  server.on('sessionError', () => {})
  server.listen(listen.port, listen.host)
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    [Symbol.asyncDispose]: async () => {
      for (const web of sockets.clients) web.terminate()
      const closed = new Promise((resolve) => server.close(resolve))
      ;(server as unknown as { closeAllConnections?: () => void }).closeAllConnections?.()
      await closed
    },
  }
}
