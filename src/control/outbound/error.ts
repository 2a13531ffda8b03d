/** The reason why a call to an external server had no usable answer. */
export type OutboundReason = 'url' | 'refused' | 'not_public' | 'unreachable' | 'timeout' | 'too_large' | 'busy'

/** `message` may be shown to the user who gave the URL. `cause` may only be logged. */
export class OutboundError extends Error {
  readonly reason: OutboundReason

  constructor(reason: OutboundReason, message: string, options: { cause?: unknown } = {}) {
    super(message, options)
    this.name = 'OutboundError'
    this.reason = reason
  }
}
