// For tests: serves repositories over HTTP on loopback, with a user name and a password, through git's own CGI program.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'

export const account = { username: 'ada', password: 'p@ss w0rd:%41$(id)"\'' }
const expected = `Basic ${Buffer.from(`${account.username}:${account.password}`).toString('base64')}`

export class GitServer {
  readonly url: string
  /** The number of requests with the right credentials. */
  admitted = 0
  /** The credentials that were sent, right or wrong. */
  readonly authorizations: string[] = []
  /**
   * Called before a request with the right credentials is served. The request is served after the returned promise has
   * resolved.
   */
  beforeServing: () => Promise<void> | void = () => {}
  readonly #server
  readonly #directory: string

  private constructor(server: ReturnType<typeof createServer>, directory: string, scheme: string) {
    this.#server = server
    this.#directory = directory
    this.url = `${scheme}://127.0.0.1:${(server.address() as AddressInfo).port}`
    server.on('request', (request, response) => {
      this.#serve(request, response).catch(() => response.destroy())
    })
  }

  static async start(directory: string, tls?: { key: string; cert: string }): Promise<GitServer> {
    const server = tls ? createTlsServer(tls) : createServer()
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    return new GitServer(server, directory, tls ? 'https' : 'http')
  }

  async #serve(request: IncomingMessage, response: ServerResponse) {
    const { authorization } = request.headers
    if (authorization !== undefined) this.authorizations.push(authorization)
    if (request.url!.startsWith('/forbidden/')) return response.writeHead(403).end()
    if (request.url!.startsWith('/missing/')) return response.writeHead(404).end()
    if (authorization !== expected) {
      return response.writeHead(401, { 'www-authenticate': 'Basic realm="tests"' }).end()
    }
    this.admitted++
    await this.beforeServing()
    const url = new URL(request.url!, this.url)
    const child = spawn('git', ['http-backend'], {
      stdio: ['pipe', 'pipe', 'ignore'],
      env: {
        PATH: '/usr/bin:/bin',
        HOME: this.#directory,
        GIT_PROJECT_ROOT: this.#directory,
        GIT_HTTP_EXPORT_ALL: '1',
        REMOTE_USER: account.username,
        REQUEST_METHOD: request.method!,
        PATH_INFO: url.pathname,
        QUERY_STRING: url.search.slice(1),
        CONTENT_TYPE: request.headers['content-type'] ?? '',
        HTTP_CONTENT_ENCODING: request.headers['content-encoding'] ?? '',
        GIT_PROTOCOL: String(request.headers['git-protocol'] ?? ''),
      },
    })
    child.stdin.on('error', () => {})
    request.pipe(child.stdin)
    const answer = Buffer.from(await text(child.stdout.setEncoding('latin1')), 'latin1')
    const end = answer.indexOf('\r\n\r\n')
    const headers = answer.subarray(0, end).toString().split('\r\n')
    for (const [name, value] of headers.map((line) => line.split(': ') as [string, string])) {
      if (name === 'Status') response.statusCode = Number.parseInt(value, 10)
      else response.setHeader(name, value)
    }
    response.end(answer.subarray(end + 4))
  }

  async [Symbol.asyncDispose]() {
    this.#server.closeAllConnections()
    this.#server.close()
    await once(this.#server, 'close')
  }
}
