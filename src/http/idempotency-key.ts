// The header by which a caller says that two requests are one, sent again.
import { Problem } from '#src/problems.ts'

/** `undefined` where there is no such header. */
export const readIdempotencyKey = (header: string | string[] | undefined): string | undefined => {
  if (header === undefined) return undefined
  if (typeof header === 'string' && /^[\x21-\x7e]{1,255}$/.test(header)) return header
  throw new Problem('bad_request', 'Idempotency-Key must be 1 to 255 visible characters')
}

/** What one is told who uses a key again for something else. */
export const otherBody = (): Problem => new Problem('unprocessable', 'This Idempotency-Key was used with another body.')
