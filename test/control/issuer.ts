// A real OpenID issuer in the test's own process: discovery and keys over loopback HTTP, tokens for whoever a test names.
//
//   const issuer = await startIssuer()
//   const token = await issuer.token({ sub: 'ada', email: 'ada@example.com' })
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type CryptoKey, exportJWK, generateKeyPair, type JWK, SignJWT } from 'jose'

/** Claims of any kind, since tests forge. */
export type Claims = Record<string, unknown>

export type TokenOptions = {
  algorithm?: 'RS256' | 'PS256' | 'ES256' | 'EdDSA'
  /** Laid over what the header would be. */
  header?: Record<string, unknown>
  /** The moment that the token is issued and its hour begins. Default: now. */
  now?: Date
}

export type TestIssuer = AsyncDisposable & {
  /** What its tokens call it, and where it is. */
  url: string
  /** A signed token for `alcove` that is good for an hour; claims laid over that, `undefined` ones left out. */
  token: (claims: Claims, options?: TokenOptions) => Promise<string>
  /** From now on it signs with new keys, and tells of no others. */
  rotate: () => void
  /** Answers in the place of the issuer; without one it is itself again. */
  misbehave: (listener?: RequestListener) => void
  /** What was asked of it so far, as paths. */
  asked: string[]
  /** The public half of what it signs with. */
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
  // A test file that forgets about it still ends.
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

/** The one that every test control of this process believes. */
export const sharedIssuer = (): Promise<TestIssuer> => {
  shared ??= startIssuer()
  return shared
}
