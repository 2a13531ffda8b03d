/** Why a call to somebody else's server brought no answer. */
export type OutboundReason = 'url' | 'refused' | 'not_public' | 'unreachable' | 'timeout' | 'too_large' | 'busy'

/** The message may be shown to whoever gave us the URL; `cause` is for the log. */
export class OutboundError extends Error {
  readonly reason: OutboundReason

  constructor(reason: OutboundReason, message: string, options: { cause?: unknown } = {}) {
    super(message, options)
    this.name = 'OutboundError'
    this.reason = reason
  }
}
