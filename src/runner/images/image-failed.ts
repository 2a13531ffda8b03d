// The error of an image that could not be fetched or built, with a sentence for the caller who requested the image.

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

/** `message` is a sentence for the caller. `cause` is the output of the failed tool, which only the log gets. */
export class ImageFailed extends Error {
  override readonly name = 'ImageFailed'
  readonly failure: ImageFailure

  constructor(failure: ImageFailure, message: string, options?: ErrorOptions) {
    super(message, options)
    this.failure = failure
  }
}

/** Returns an ImageFailed whose sentence begins with `place`, such as a line of a definition. Returns other errors unchanged. */
export const failedAt = (place: string, error: unknown): unknown =>
  error instanceof ImageFailed
    ? new ImageFailed(error.failure, `${place}: ${error.message}`, { cause: error.cause })
    : error

/**
 * Thrown if a server that a caller has named could not be reached. The error's text and time (`notBefore`) do not depend on the
 * cause, so text and time reveal no names of the operator's network.
 */
export class Unreached extends ImageFailed {
  /**
   * Time (`performance.now()`) before which callers must not get this error. It is `begun` plus a multiple of a span that is longer
   * than a request's timeout. An immediate refusal and a timeout therefore look equal to callers.
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
