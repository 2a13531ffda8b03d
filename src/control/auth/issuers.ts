// Decides which tokens of people are accepted, by expiry, audience, issuer and algorithm.
// A token may name a URL of its public key; that URL is ignored.
import {
  createRemoteJWKSet,
  customFetch,
  decodeJwt,
  decodeProtectedHeader,
  errors,
  type JWTPayload,
  type JWTVerifyGetKey,
  jwtVerify,
} from 'jose'
import type { IdentitySettings } from '#src/control/settings/identity.ts'
import type { Clock } from '#src/kit/clock.ts'
import type { Logger } from '#src/kit/log.ts'
import { Problem } from '#src/problems.ts'
import { type Claims, readClaims } from './claims.ts'
import { keyFetcher } from './fetch-keys.ts'

/** All accepted algorithms use public keys. With a shared secret, whoever checks tokens could also make them. */
const algorithms = ['RS256', 'PS256', 'ES256', 'EdDSA'] as const

/**
 * The accepted types: RFC 9068 has `at+jwt`, and most issuers write `JWT` or no type. Tokens for other purposes have other
 * types.
 */
const types = [undefined, 'jwt', 'at+jwt', 'application/at+jwt']

const cacheMilliseconds = 10 * 60 * 1000
const timeoutMilliseconds = 5_000

type Issuers = {
  /**
   * Returns the claims of a valid token, and undefined for any other token. Throws 503 while the issuer cannot be
   * reached.
   */
  verify: (token: string) => Promise<Claims | undefined>
}

/** An issuer inside this server: the subjects of its tokens are the ids of our users. */
export type OwnIssuer = { url: string; getKey: JWTVerifyGetKey }

type IssuersParts = { identity: IdentitySettings; clock: Clock; log: Logger; own: readonly OwnIssuer[] }

const keysOf = (issuer: string, { keyCooldownSeconds }: IdentitySettings): JWTVerifyGetKey =>
  createRemoteJWKSet(new URL(issuer), {
    [customFetch]: keyFetcher(issuer),
    timeoutDuration: timeoutMilliseconds,
    cooldownDuration: keyCooldownSeconds * 1000,
    cacheMaxAge: cacheMilliseconds,
  })

/**
 * Returns the issuer that an unverified token names. Returns undefined if control refuses the token's algorithm or type. In
 * that case, control fetches no keys.
 */
const findIssuer = (token: string): string | undefined => {
  try {
    const { alg, typ } = decodeProtectedHeader(token)
    if (!algorithms.some((known) => known === alg) || !types.includes(typ?.toLowerCase())) return undefined
    return decodeJwt(token).iss
  } catch {
    return undefined
  }
}

/** Verifies a token with each key that may have signed it. Keys of an issuer may have equal ids, or no ids. */
const verifyByAny = async (error: errors.JWKSMultipleMatchingKeys, verify: (key: CryptoKey) => Promise<JWTPayload>) => {
  let tried = 0
  for await (const key of error) {
    tried += 1
    if (tried > 10) break
    try {
      return await verify(key as CryptoKey)
    } catch (failure) {
      if (!(failure instanceof errors.JWSSignatureVerificationFailed)) throw failure
    }
  }
  throw new errors.JWSSignatureVerificationFailed()
}

/** Whether the library jose found a fault in the token itself. False if the issuer caused the error. */
const isTokensFault = (error: unknown): boolean =>
  error instanceof errors.JOSEError && !(error instanceof errors.JWKSTimeout) && !(error instanceof errors.JWKSInvalid)

export const createIssuers = ({ identity, clock, log, own }: IssuersParts): Issuers => {
  const keySets = new Map(identity.issuers.map((issuer) => [issuer, keysOf(issuer, identity)]))
  for (const { url, getKey } of own) keySets.set(url, getKey)

  const verifyOf = async (token: string, issuer: string, keys: JWTVerifyGetKey): Promise<JWTPayload> => {
    const options = {
      issuer,
      audience: identity.audience,
      algorithms: [...algorithms],
      requiredClaims: ['exp', 'sub'],
      clockTolerance: identity.clockSkewSeconds,
      currentDate: clock.now(),
      // The ID tokens of this server's own issuer are only for the client that requested them, and are refused here.
      ...(own.some(({ url }) => url === issuer) ? { typ: 'at+jwt' } : {}),
    }
    try {
      return (await jwtVerify(token, keys, options)).payload
    } catch (error) {
      if (!(error instanceof errors.JWKSMultipleMatchingKeys)) throw error
      return await verifyByAny(error, async (key) => (await jwtVerify(token, key, options)).payload)
    }
  }

  return {
    verify: async (token) => {
      const issuer = findIssuer(token)
      const keys = issuer === undefined ? undefined : keySets.get(issuer)
      if (issuer === undefined || keys === undefined) return undefined
      try {
        return readClaims(issuer, await verifyOf(token, issuer, keys))
      } catch (error) {
        if (isTokensFault(error)) return undefined
        log.warn({ err: error }, 'the keys of an issuer could not be fetched')
        throw new Problem('unavailable', 'The issuer of this token cannot be reached.', { cause: error })
      }
    },
  }
}
