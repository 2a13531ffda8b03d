// Answers that come before the whole body has been read. Many clients send all of a body before they read anything, and a
// connection that is closed with something unread is reset, which takes the answer with it. So what is left of the body is
// read away, within bounds, and a connection that has to close is closed for writing first (RFC 9112 §9.6).
import { type IncomingMessage, ServerResponse } from 'node:http'

/** How much of a body is read away, for how long in all, and after how long a silence the connection is cut off. */
export type ReadAwayBounds = { mostBytes: number; longestMs: number; silentMs: number }

const usualBounds: ReadAwayBounds = { mostBytes: 256 * 1024 ** 2, longestMs: 120_000, silentMs: 10_000 }

export const hasBody = ({ headers }: Pick<IncomingMessage, 'headers'>): boolean =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0

const isUnread = (request: IncomingMessage): boolean => !request.complete && hasBody(request)

/** Reads the rest of a body that nobody wants, and lets the connection close only when that is over. */
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
  // Node closes a connection by this as soon as the answer is written. Until the body is here only its writing side closes.
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

/** The answers of every server of ours: Node takes the class as its `ServerResponse`. */
export const answersWithin = (bounds: ReadAwayBounds = usualBounds): typeof ServerResponse<IncomingMessage> =>
  class Answer extends ServerResponse<IncomingMessage> {
    #isContinued = false

    override writeContinue(callback?: () => void): void {
      this.#isContinued = true
      super.writeContinue(callback)
    }

    // The arguments have two forms, and pass through as they are.
    override writeHead(...head: unknown[]): this {
      if (isUnread(this.req) && !this.#canReadAll()) this.shouldKeepAlive = false
      return super.writeHead(...(head as Parameters<ServerResponse['writeHead']>)) as this
    }

    override end(...last: unknown[]): this {
      if (!this.writableEnded && isUnread(this.req)) readAway(this.req, bounds)
      return super.end(...(last as [])) as this
    }

    /** False: the rest is too long, or its sender waits for a word before it sends, and may now never send it. */
    #canReadAll(): boolean {
      const { headers } = this.req
      if (headers.expect !== undefined && !this.#isContinued) return false
      return Number(headers['content-length'] ?? 0) <= bounds.mostBytes
    }
  }
