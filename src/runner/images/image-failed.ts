// Why an image could not be brought, in a sentence for the person who asked for it.

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

/** The message goes to the caller; further output of a tool is the cause, and goes to the log. */
export class ImageFailed extends Error {
  override readonly name = 'ImageFailed'
  readonly failure: ImageFailure

  constructor(failure: ImageFailure, message: string, options?: ErrorOptions) {
    super(message, options)
    this.failure = failure
  }
}

/**
 * Nobody may learn from it whether a name exists in the operator's network. So whatever stood in the way has one sentence, and
 * `notBefore`, by `performance.now()`, tells when the person who asked may hear of it.
 */
export class Unreached extends ImageFailed {
  readonly notBefore: number

  constructor(host: string, notBefore: number, options?: ErrorOptions, what = 'registry') {
    super('unreachable', `The ${what} ${host} cannot be reached, or does not answer in time.`, options)
    this.notBefore = notBefore
  }
}
