// A real OpenID issuer in the test's process. It serves its documents over HTTP on loopback, and signs tokens with any claims.
//   const issuer = await startIssuer()
//   const token = await issuer.token({ sub: 'ada', email: 'ada@example.com' })
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type CryptoKey, exportJWK, generateKeyPair, type JWK, SignJWT } from 'jose'

/** Claims of a token. Their values can be of any type, because some tests make malformed tokens. */
export type Claims = Record<string, unknown>

export type TokenOptions = {
  algorithm?: 'RS256' | 'PS256' | 'ES256' | 'EdDSA'
  /** Fields of the token's header, which replace the fields that the issuer sets by default. */
  header?: Record<string, unknown>
  /** The time at which the token is issued. The token expires an hour later. Default: now. */
  now?: Date
}

export type TestIssuer = AsyncDisposable & {
  /** The issuer's name in the tokens, which is also the issuer's URL. */
  url: string
  /**
   * Returns a signed token for the audience `alcove`, valid for an hour. `claims` replace default claims; the value `undefined`
   * removes a claim.
   */
  token: (claims: Claims, options?: TokenOptions) => Promise<string>
  /** Makes the issuer sign with new keys from now on, and publish only the new keys. */
  rotate: () => void
  /** Makes `listener` answer all requests instead of the issuer. After a call without `listener`, the issuer answers again. */
  misbehave: (listener?: RequestListener) => void
  /** The paths of all requests that the issuer has received so far. */
  asked: string[]
  /** Returns the public key that belongs to the issuer's signing key. */
  publicJwk: (algorithm?: TokenOptions['algorithm']) => Promise<JWK>
}

type Pair = { kid: string; publicKey: CryptoKey; privateKey: CryptoKey }

export const startIssuer = async (): Promise<TestIssuer> => {
  let round = 0
  let pairs = new Map<string, Promise<Pair>>()
  const asked: string[] = []
  let listener: RequestListener | undefined

  const pairOf = (algorithm: string): Promise<Pair> => {
    const kid = `${algorithm}-${round}`
    const pair =
      pairs.get(algorithm) ??
      generateKeyPair(algorithm, { extractable: true }).then((made) => ({ kid, ...made }) satisfies Pair)
    pairs.set(algorithm, pair)
    return pair
  }

  const publicJwk = async (algorithm = 'ES256'): Promise<JWK> => {
    const { kid, publicKey } = await pairOf(algorithm)
    return { ...(await exportJWK(publicKey)), kid, use: 'sig', alg: algorithm }
  }

  const documents: Record<string, () => Promise<unknown>> = {
    '/.well-known/openid-configuration': async () => ({ issuer: url, jwks_uri: `${url}/keys` }),
    '/keys': async () => ({ keys: await Promise.all([...pairs.keys()].map(publicJwk)) }),
  }

  const server = createServer((request, response) => {
    const path = request.url ?? ''
    asked.push(path)
    if (listener) return listener(request, response)
    const document = documents[path]
    if (document === undefined) return response.writeHead(404).end()
    document().then((value) => response.setHeader('content-type', 'application/json').end(JSON.stringify(value)))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  // The listening server does not keep the test's process alive, so a test file need not close the issuer.
  server.unref()
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`

  return {
    url,
    asked,
    publicJwk,
    token: async (claims, { algorithm = 'ES256', header = {}, now = new Date() } = {}) => {
      const { kid, privateKey } = await pairOf(algorithm)
      const seconds = Math.floor(now.getTime() / 1000)
      const payload = { iss: url, aud: 'alcove', iat: seconds, exp: seconds + 3600, ...claims }
      return await new SignJWT(payload).setProtectedHeader({ alg: algorithm, kid, ...header }).sign(privateKey)
    },
    rotate: () => {
      round += 1
      pairs = new Map()
    },
    misbehave: (instead) => {
      listener = instead
    },
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

let shared: Promise<TestIssuer> | undefined

/** Returns one issuer for all tests in this process. Every control that `startControl` starts trusts this issuer's tokens. */
export const sharedIssuer = (): Promise<TestIssuer> => {
  shared ??= startIssuer()
  return shared
}
