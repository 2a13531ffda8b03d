// Ends request bodies that arrive too slowly. A connection with a credential stays open for as long as its call takes,
// so its body must not stop. Even a slow network line is far above the minimum speed, whatever the size of the body.
import type { IncomingMessage } from 'node:http'

export type SlowBodiesBounds = {
  /** Milliseconds of a span in which the speed of a body is measured. */
  spanMs?: number
  leastBytesPerSecond?: number
}

/** The sentence that the sender of a slow body gets. */
export const tooSlow = 'The body has come too slowly, or not at all.'

/** Whether our own reader makes the body slow. A stream that is read with `read()` always reports itself as paused. */
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

  /** Watches a body. `onSlow` is called at most once. Returns a function that stops watching. */
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
