// An image registry on loopback that requires an account. It checks passwords itself, or names a token service that checks them.
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { TestRegistry } from '#src/runner/images/testing/registry.ts'

type Way = 'basic' | 'token'

export class GuardedRegistry {
  readonly registry: TestRegistry
  /** The password of each username. A test may change the accounts. */
  readonly accounts: Map<string, string>
  /** Each value of the header `Authorization` that the registry or the token service has received. */
  readonly received: string[] = []
  /** URL of the token service that the registry names in its 401 answers. Default: the token service of this object. */
  realm: string
  readonly #tokens: Server

  private constructor(registry: TestRegistry, tokens: Server, accounts: Readonly<Record<string, string>>) {
    this.registry = registry
    this.#tokens = tokens
    this.accounts = new Map(Object.entries(accounts))
    this.realm = `http://127.0.0.1:${(tokens.address() as { port: number }).port}/token`
  }

  static async guard(registry: TestRegistry, way: Way, accounts: Readonly<Record<string, string>>) {
    const tokens = createServer((request, response) => {
      const allowed = guarded.#isAllowed(request.headers.authorization)
      response.writeHead(allowed ? 200 : 401, { 'content-type': 'application/json' })
      response.end(allowed ? JSON.stringify({ token: `token-of-${allowed}`, expires_in: 300 }) : '{}')
    })
    await once(tokens.listen(0, '127.0.0.1'), 'listening')
    const guarded = new GuardedRegistry(registry, tokens, accounts)
    registry.onRequest = (_path, answer, { headers }) => {
      const { authorization = '' } = headers
      const isAllowed =
        way === 'basic'
          ? guarded.#isAllowed(authorization) !== undefined
          : guarded.#note(authorization) && /^Bearer token-of-/.test(authorization)
      if (isAllowed) return answer
      const challenge = way === 'basic' ? 'Basic realm="images"' : `Bearer realm="${guarded.realm}",service="tokens"`
      // The error message repeats the credentials that the registry has received, as a malicious registry might do.
      const body = Buffer.from(JSON.stringify({ errors: [{ code: 'UNAUTHORIZED', message: authorization }] }))
      return { ...answer, status: 401, body, headers: { 'www-authenticate': challenge } }
    }
    return guarded
  }

  get host(): string {
    return this.registry.host
  }

  #note(authorization = ''): boolean {
    if (authorization !== '') this.received.push(authorization)
    return true
  }

  /** Returns the username if the header `Authorization` has the right password for this user; otherwise undefined. */
  #isAllowed(authorization = ''): string | undefined {
    this.#note(authorization)
    const [, encoded = ''] = /^Basic (.+)$/.exec(authorization) ?? []
    const [, username = '', password] = /^([^:]*):(.*)$/s.exec(Buffer.from(encoded, 'base64').toString()) ?? []
    return password !== undefined && this.accounts.get(username) === password ? username : undefined
  }

  async [Symbol.asyncDispose]() {
    this.#tokens.closeAllConnections()
    await new Promise((resolve) => this.#tokens.close(resolve))
  }
}
