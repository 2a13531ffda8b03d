import { hmac } from '@noble/hashes/hmac.js'
import { sha256 } from '@noble/hashes/sha2.js'
import { base64url } from '../../../session/base64url.ts'

/**
 * A signed URL, with which the browser itself downloads one file until `expires` (in seconds since 1970). Such a download sends no
 * credential. A library computes the HMAC, because browsers offer none on pages without HTTPS.
 */
export const signedAddress = (toolbox: string, signingKey: string, path: string, expires: number): string => {
  const encode = new TextEncoder()
  const mac = hmac(sha256, encode.encode(signingKey), encode.encode(`v1:files:GET:${path}:${expires}`))
  const query = new URLSearchParams({ path, expires: String(expires), signature: `v1_${base64url(mac)}` })
  return `${toolbox}/files/download?${query}`
}
