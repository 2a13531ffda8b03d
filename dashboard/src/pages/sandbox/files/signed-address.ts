import { hmac } from '@noble/hashes/hmac.js'
import { sha256 } from '@noble/hashes/sha2.js'
import { base64url } from '../../../session/base64url.ts'

/**
 * Returns a URL with which the browser itself downloads one file. The browser sends no credential with such a download, so the
 * URL is signed for this path until `expires` (in seconds since 1970). A library computes the HMAC, because browsers offer none
 * on pages without HTTPS.
 */
export const signedAddress = (toolbox: string, signingKey: string, path: string, expires: number): string => {
  const encode = new TextEncoder()
  const mac = hmac(sha256, encode.encode(signingKey), encode.encode(`v1:files:GET:${path}:${expires}`))
  const query = new URLSearchParams({ path, expires: String(expires), signature: `v1_${base64url(mac)}` })
  return `${toolbox}/files/download?${query}`
}
