// Fetches the public keys of an issuer: first its discovery document, then the key set that the document names.
import { errors } from 'jose'
import { isIssuerUrl } from '#src/control/settings/identity.ts'
import { readWhole } from '#src/kit/read-whole.ts'

const mostBytes = 256 * 1024

/** Milliseconds for which the last known keys of an issuer are trusted while the issuer cannot be reached. */
const believedMilliseconds = 60 * 60 * 1000

/**
 * Minimum milliseconds between a failed request to an issuer and the next one, while control has no keys of that
 * issuer.
 */
const pauseMilliseconds = 2_000

const tooLarge = () => new errors.JWKSInvalid(`more than ${mostBytes} bytes`)

const readJson = async (
  url: string,
  signal: AbortSignal,
): Promise<{ text: string; value: Record<string, unknown> }> => {
  const response = await fetch(url, { signal, redirect: 'error', headers: { accept: 'application/json' } })
  if (response.status !== 200) {
    await response.body?.cancel()
    throw new errors.JWKSInvalid(`${url} answered ${response.status}`)
  }
  const text = (await readWhole(response.body ?? [], mostBytes, tooLarge)).toString('utf8')
  const value: unknown = JSON.parse(text)
  if (typeof value !== 'object' || value === null) throw new errors.JWKSInvalid(`${url} is no JSON object`)
  return { text, value: value as Record<string, unknown> }
}

/**
 * Requests the discovery document of an issuer. Refuses a document that names a different issuer (OpenID Connect
 * Discovery §4).
 */
export const readDiscovery = async (issuer: string, signal: AbortSignal): Promise<Record<string, unknown>> => {
  const { value } = await readJson(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`, signal)
  if (value['issuer'] !== issuer) throw new errors.JWKSInvalid('the discovery document is of another issuer')
  return value
}

const askIssuer = async (issuer: string, signal: AbortSignal): Promise<string> => {
  const { jwks_uri: keys } = await readDiscovery(issuer, signal)
  if (typeof keys !== 'string' || !isIssuerUrl(keys.split('?')[0]!))
    throw new errors.JWKSInvalid('its jwks_uri is not usable')
  return (await readJson(keys, signal)).text
}

/**
 * Returns the fetch function with which the library jose gets the keys of an issuer.
 * While the issuer is unreachable, its last known keys stay valid for `believedMilliseconds`.
 * Without such keys, the issuer gets at most one request per `pauseMilliseconds`.
 */
export const keyFetcher = (issuer: string) => {
  let heard: { text: string; at: number } | undefined
  let failed: { error: unknown; at: number } | undefined
  return async (_url: string, { signal }: { signal: AbortSignal }): Promise<Response> => {
    if (failed !== undefined && performance.now() - failed.at < pauseMilliseconds) throw failed.error
    try {
      heard = { text: await askIssuer(issuer, signal), at: performance.now() }
      failed = undefined
    } catch (error) {
      if (heard === undefined || performance.now() - heard.at > believedMilliseconds) {
        failed = { error, at: performance.now() }
        throw error
      }
    }
    return new Response(heard.text)
  }
}
