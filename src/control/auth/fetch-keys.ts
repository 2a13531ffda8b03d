// Asks an issuer for its keys: discovery, then the key set. Both have limits of time and size, and redirects are not followed.
import { errors } from 'jose'
import { isIssuerUrl } from '#src/control/settings/identity.ts'
import { readWhole } from '#src/kit/read-whole.ts'

const mostBytes = 256 * 1024

/** Milliseconds for which the keys of an issuer are still trusted while it cannot be reached. */
const believedMilliseconds = 60 * 60 * 1000

/** Milliseconds for which an issuer that failed is not asked again while none of its keys are known. */
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

/** Asks an issuer for its keys. By OpenID Connect Discovery §4, a document that names another issuer is refused. */
const askIssuer = async (issuer: string, signal: AbortSignal): Promise<string> => {
  const { value } = await readJson(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`, signal)
  const { issuer: said, jwks_uri: keys } = value
  if (said !== issuer) throw new errors.JWKSInvalid('the discovery document is of another issuer')
  if (typeof keys !== 'string' || !isIssuerUrl(keys.split('?')[0]!))
    throw new errors.JWKSInvalid('its jwks_uri is not usable')
  return (await readJson(keys, signal)).text
}

/**
 * Makes the fetch function for `createRemoteJWKSet`, which sets the timeout. The last known keys stay valid for a while
 * when the issuer cannot be reached. An issuer that is down is asked only once in a while, not by every request.
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
