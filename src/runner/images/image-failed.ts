// Why an image could not be fetched or built, as a sentence for its caller.

export type ImageFailure =
  | 'invalid-reference'
  | 'not-found'
  | 'refused'
  | 'unreachable'
  | 'corrupted'
  | 'too-large'
  | 'too-many-files'
  | 'too-many-layers'
  | 'wrong-architecture'
  | 'unsupported'
  | 'took-too-long'
  | 'no-room'
  | 'cancelled'
  | 'build-failed'
  | 'failed'

/** The message goes to the caller. Further output of a tool is the cause, and goes to the log. */
export class ImageFailed extends Error {
  override readonly name = 'ImageFailed'
  readonly failure: ImageFailure

  constructor(failure: ImageFailure, message: string, options?: ErrorOptions) {
    super(message, options)
    this.failure = failure
  }
}

/** Returns an ImageFailed with `place`, such as the line of a definition, before its sentence. Returns other errors unchanged. */
export const failedAt = (place: string, error: unknown): unknown =>
  error instanceof ImageFailed
    ? new ImageFailed(error.failure, `${place}: ${error.message}`, { cause: error.cause })
    : error

/**
 * Thrown if a server that a caller has named could not be reached. The error must not reveal whether a name exists in the
 * operator's network: neither by its text nor by its time. Therefore all such errors have the same sentence, and the caller gets
 * the error only after `notBefore` (a `performance.now()` time).
 */
export class Unreached extends ImageFailed {
  /**
   * Time is divided into spans from `begun` on; this is the end of the current span. One span is longer than a request that times
   * out, so the time of an error reveals nothing.
   */
  readonly notBefore: number

  constructor(
    server: string,
    { begun, answerTimeoutMs }: { begun: number; answerTimeoutMs: number },
    options?: ErrorOptions,
  ) {
    super('unreachable', `The ${server} cannot be reached, or does not answer in time.`, options)
    const span = answerTimeoutMs + 1000
    this.notBefore = begun + span * Math.ceil((performance.now() - begun) / span)
  }
}
