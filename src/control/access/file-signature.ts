// Signed file URLs: whoever holds the sandbox's signing key makes them without asking anybody.
import { createHmac, timingSafeEqual } from 'node:crypto'
import type { Credential } from '#src/wire/access.ts'

type FileSignature = Extract<Credential, { kind: 'file-signature' }>

/** Whether this key made this signature, and it has not expired. Without `now` an expired signature counts too. */
export const isSignedBy = (
  signingKey: string,
  { method, path, expires, signature }: FileSignature,
  now: Date | undefined,
): boolean => {
  // With leading zeros or signs, a moment could be written in several ways, each with a signature of its own.
  if (!/^(?:0|[1-9]\d{0,14})$/.test(expires)) return false
  const mac = createHmac('sha256', signingKey).update(`v1:files:${method}:${path}:${expires}`).digest('base64url')
  const [ours, theirs] = [Buffer.from(`v1_${mac}`), Buffer.from(signature)]
  if (ours.length !== theirs.length || !timingSafeEqual(ours, theirs)) return false
  return expires === '0' || now === undefined || Number(expires) * 1000 > now.getTime()
}
