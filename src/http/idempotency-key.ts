// The header Idempotency-Key. A caller sends the same key with a request and its repetition, so that the server acts
// only once.
import { Problem } from '#src/problems.ts'

/** Reads the header Idempotency-Key. Returns `undefined` if the header is absent. */
export const readIdempotencyKey = (header: string | string[] | undefined): string | undefined => {
  if (header === undefined) return undefined
  if (typeof header === 'string' && /^[\x21-\x7e]{1,255}$/.test(header)) return header
  throw new Problem('bad_request', 'Idempotency-Key must be 1 to 255 visible characters')
}

/** Returns the error for a request that has the Idempotency-Key of an earlier request, but another body. */
export const otherBody = (): Problem => new Problem('unprocessable', 'This Idempotency-Key was used with another body.')
