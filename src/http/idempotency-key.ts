// The header Idempotency-Key: a caller marks a request as a retry of an earlier one.
import { Problem } from '#src/problems.ts'

/** Reads the header Idempotency-Key. Returns `undefined` if the header is absent. */
export const readIdempotencyKey = (header: string | string[] | undefined): string | undefined => {
  if (header === undefined) return undefined
  if (typeof header === 'string' && /^[\x21-\x7e]{1,255}$/.test(header)) return header
  throw new Problem('bad_request', 'Idempotency-Key must be 1 to 255 visible characters')
}

/** Returns the refusal for a key that is used again with a different body. */
export const otherBody = (): Problem => new Problem('unprocessable', 'This Idempotency-Key was used with another body.')
