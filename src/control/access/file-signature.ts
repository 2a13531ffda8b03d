// Signed file URLs. Whoever has the signing key of the sandbox can make them without a call to the API.
import { createHmac, timingSafeEqual } from 'node:crypto'
import type { Credential } from '#src/wire/access.ts'

type FileSignature = Extract<Credential, { kind: 'file-signature' }>

/**
 * Whether this signature was made with the signing key of the sandbox and has not expired. Without `now`, expiry is not
 * checked.
 */
export const isSignedBy = (
  signingKey: string,
  { method, path, expires, signature }: FileSignature,
  now: Date | undefined,
): boolean => {
  // The expiry is a number of seconds since 1970 (0: never). Leading zeros and signs are refused.
  if (!/^(?:0|[1-9]\d{0,14})$/.test(expires)) return false
  const mac = createHmac('sha256', signingKey).update(`v1:files:${method}:${path}:${expires}`).digest('base64url')
  const [ours, theirs] = [Buffer.from(`v1_${mac}`), Buffer.from(signature)]
  if (ours.length !== theirs.length || !timingSafeEqual(ours, theirs)) return false
  return expires === '0' || now === undefined || Number(expires) * 1000 > now.getTime()
}
