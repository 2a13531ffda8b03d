// Ends request bodies that arrive too slowly. Otherwise a caller with a credential could keep a connection open for ever. The
// server closes no such connection to make room for a new one. The minimum speed is far below that of a slow network.
import type { IncomingMessage } from 'node:http'

export type SlowBodiesBounds = {
  /** Length of the interval, in milliseconds, over which the speed of a body is measured. */
  spanMs?: number
  leastBytesPerSecond?: number
}

/** The error sentence for a body that is too slow. */
export const tooSlow = 'The body of the request arrived too slowly, or not at all.'

/**
 * Whether a body comes slowly only because our own code does not read it. Node reports a stream with a listener for
 * `readable` as paused, although it is read with `read()`.
 */
const waitsForReader = (request: IncomingMessage): boolean =>
  request.readableLength > 0 || (request.isPaused() && request.listenerCount('readable') === 0)

type Body = { request: IncomingMessage; from: number; since: number; onSlow: () => void }

export class SlowBodies {
  readonly #spanMs: number
  readonly #leastBytes: number
  readonly #bodies = new Set<Body>()
  #timer: NodeJS.Timeout | undefined

  constructor({ spanMs = 60_000, leastBytesPerSecond = 1024 }: SlowBodiesBounds = {}) {
    this.#spanMs = spanMs
    this.#leastBytes = (leastBytesPerSecond * spanMs) / 1000
  }

  /** Checks the speed of a body. Calls `onSlow` once if the body is too slow. Returns a function that ends the check. */
  follow(request: IncomingMessage, onSlow: () => void): () => void {
    const body = { request, from: request.socket.bytesRead, since: performance.now(), onSlow }
    this.#bodies.add(body)
    this.#timer ??= setInterval(() => this.#look(), this.#spanMs / 10).unref()
    return () => this.#forget(body)
  }

  #look() {
    const now = performance.now()
    for (const body of this.#bodies) {
      const { request, from, since, onSlow } = body
      if (request.complete || request.destroyed) {
        this.#forget(body)
        continue
      }
      const { bytesRead } = request.socket
      if (waitsForReader(request)) Object.assign(body, { from: bytesRead, since: now })
      else if (now - since >= this.#spanMs) {
        if (bytesRead - from >= this.#leastBytes) Object.assign(body, { from: bytesRead, since: now })
        else {
          this.#forget(body)
          onSlow()
        }
      }
    }
  }

  #forget(body: Body) {
    this.#bodies.delete(body)
    if (this.#bodies.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}
