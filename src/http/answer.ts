// Answers that are sent before the whole body has been read. Many clients send all of a body before they read an
// answer. A connection that is closed with unread bytes is reset, and the answer is lost. So the rest of the body is
// read and discarded, up to a limit. A connection that must close is closed for writing first (RFC 9112 §9.6).
import { type IncomingMessage, ServerResponse } from 'node:http'

/**
 * Limits for discarding the rest of a body. `mostBytes`: most bytes. `longestMs`: longest time. `silentMs`: longest
 * time without a byte; then the connection is destroyed.
 */
export type ReadAwayBounds = { mostBytes: number; longestMs: number; silentMs: number }

const usualBounds: ReadAwayBounds = { mostBytes: 256 * 1024 ** 2, longestMs: 120_000, silentMs: 10_000 }

export const hasBody = ({ headers }: Pick<IncomingMessage, 'headers'>): boolean =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0

const isUnread = (request: IncomingMessage): boolean => !request.complete && hasBody(request)

/** Reads and discards the rest of a body. The connection must stay open until that is done. */
const readAway = (request: IncomingMessage, { mostBytes, longestMs, silentMs }: ReadAwayBounds): void => {
  const { socket } = request
  const endsAt = performance.now() + longestMs
  let left = mostBytes
  let isClosing = false
  const cutOff = () => void socket.destroy()
  const timer = setTimeout(cutOff, silentMs).unref()
  const onData = (piece: Buffer) => {
    left -= piece.length
    if (left < 0 || performance.now() > endsAt) cutOff()
    else timer.refresh()
  }
  // Node calls `destroySoon` as soon as the answer is written. Until the whole body has arrived, only the writing side
  // is closed.
  socket.destroySoon = () => {
    isClosing = true
    if (request.complete) stop()
    else socket.end()
  }
  const stop = () => {
    clearTimeout(timer)
    request.off('data', onData)
    socket.off('close', stop)
    Reflect.deleteProperty(socket, 'destroySoon')
    if (isClosing) socket.destroySoon()
  }
  socket.once('close', stop)
  request.once('end', stop).on('data', onData).resume()
}

/** Returns the class of answers for all our servers, for Node's option `ServerResponse`. */
export const answersWithin = (bounds: ReadAwayBounds = usualBounds): typeof ServerResponse<IncomingMessage> =>
  class Answer extends ServerResponse<IncomingMessage> {
    #isContinued = false

    override writeContinue(callback?: () => void): void {
      this.#isContinued = true
      super.writeContinue(callback)
    }

    // writeHead has two forms of arguments, and both are passed on unchanged.
    override writeHead(...head: unknown[]): this {
      if (isUnread(this.req) && !this.#canReadAll()) this.shouldKeepAlive = false
      return super.writeHead(...(head as Parameters<ServerResponse['writeHead']>)) as this
    }

    override end(...last: unknown[]): this {
      // After a request failed while it was read, nothing can be discarded: the request is destroyed, and Node has
      // removed its socket.
      if (!this.writableEnded && isUnread(this.req) && !this.req.destroyed) readAway(this.req, bounds)
      return super.end(...(last as [])) as this
    }

    /**
     * Whether the rest of the body can be read. False if it is too long, or if its sender waits for `100 Continue` and
     * may never send it.
     */
    #canReadAll(): boolean {
      const { headers } = this.req
      if (headers.expect !== undefined && !this.#isContinued) return false
      return Number(headers['content-length'] ?? 0) <= bounds.mostBytes
    }
  }
