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

/** Returns the failure with words before its sentence, such as a line of a definition. Other errors stay as they are. */
export const failedAt = (place: string, error: unknown): unknown =>
  error instanceof ImageFailed
    ? new ImageFailed(error.failure, `${place}: ${error.message}`, { cause: error.cause })
    : error

/**
 * Thrown if a server that a caller has named could not be reached. The error must not reveal whether a name exists in the
 * operator's network: neither by its text nor by its time. Therefore all such errors have one sentence, and the caller gets none
 * before `notBefore` (a `performance.now()` time).
 */
export class Unreached extends ImageFailed {
  /** The end of a span after `begun`. A span is longer than the time limit of a request and the end of its program. */
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
