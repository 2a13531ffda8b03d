// Refusals of the object storage. They have S3's error codes, by which S3 clients decide, for example, whether to retry.
import { Problem } from '#src/problems.ts'

const statuses = {
  AccessDenied: 403,
  BadDigest: 400,
  EntityTooLarge: 400,
  ExpiredToken: 400,
  IncompleteBody: 400,
  InternalError: 500,
  InvalidAccessKeyId: 403,
  InvalidRequest: 400,
  MalformedXML: 400,
  MethodNotAllowed: 405,
  NoSuchBucket: 404,
  NoSuchKey: 404,
  NoSuchUpload: 404,
  NotImplemented: 501,
  RequestTimeTooSkewed: 403,
  RequestTimeout: 400,
  ServiceUnavailable: 503,
  SignatureDoesNotMatch: 403,
  SlowDown: 503,
} as const

type S3Code = keyof typeof statuses

export class S3Refusal extends Error {
  override readonly name = 'S3Refusal'
  readonly code: S3Code

  constructor(code: S3Code, message: string, options?: ErrorOptions) {
    super(message, options)
    this.code = code
  }

  get status(): number {
    return statuses[this.code]
  }

  /** A refusal without a `cause` is due to a mistake of the caller, so it is logged at debug level only. */
  get logLevel(): 'debug' | 'warn' | 'error' {
    if (this.code === 'InternalError') return 'error'
    return this.cause === undefined ? 'debug' : 'warn'
  }
}

const codes: Partial<Record<number, S3Code>> = {
  400: 'InvalidRequest',
  401: 'InvalidAccessKeyId',
  403: 'AccessDenied',
  404: 'NoSuchUpload',
  408: 'RequestTimeout',
  410: 'ExpiredToken',
  413: 'EntityTooLarge',
  429: 'SlowDown',
}

/** Returns the refusal for a status with which control or a runner has answered. */
export const refusalOf = (status: number, message: string, options?: ErrorOptions): S3Refusal =>
  new S3Refusal(codes[status] ?? 'ServiceUnavailable', message, options)

export const asRefusal = (error: unknown): S3Refusal => {
  if (error instanceof S3Refusal) return error
  if (error instanceof Problem) return refusalOf(error.status, error.message, { cause: error.cause })
  return new S3Refusal('InternalError', 'The server had an internal error. Its log says what happened.', {
    cause: error,
  })
}
