// Handles the case that the server answers before it has read the whole body of a request. Many clients send the whole body
// first. If the connection were closed with unread bytes, the kernel would reset it and the answer would be lost. So the
// server reads and discards the rest, up to a limit. A connection that must close is first closed only for writing (RFC
// 9112 §9.6).
import { type IncomingMessage, ServerResponse } from 'node:http'

/**
 * Limits for discarding the rest of a body. `silentMs`: maximum time without a byte. Beyond a limit, the connection is
 * destroyed.
 */
export type ReadAwayBounds = { mostBytes: number; longestMs: number; silentMs: number }

const usualBounds: ReadAwayBounds = { mostBytes: 256 * 1024 ** 2, longestMs: 120_000, silentMs: 10_000 }

export const hasBody = ({ headers }: Pick<IncomingMessage, 'headers'>): boolean =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0

const isUnread = (request: IncomingMessage): boolean => !request.complete && hasBody(request)

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
  // Node calls `destroySoon` when the answer is written. Node's own method would close the connection. Until the whole body has
  // arrived, our method closes the connection only for writing. So the client can still send.
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

/** Returns the class of answers that all of our servers use. It is passed to Node's servers as the option `ServerResponse`. */
export const answersWithin = (bounds: ReadAwayBounds = usualBounds): typeof ServerResponse<IncomingMessage> =>
  class Answer extends ServerResponse<IncomingMessage> {
    #isContinued = false

    override writeContinue(callback?: () => void): void {
      this.#isContinued = true
      super.writeContinue(callback)
    }

    // Node's `writeHead` has two forms, so the arguments are passed on unchanged.
    override writeHead(...head: unknown[]): this {
      if (isUnread(this.req) && !this.#canReadAll()) this.shouldKeepAlive = false
      return super.writeHead(...(head as Parameters<ServerResponse['writeHead']>)) as this
    }

    override end(...last: unknown[]): this {
      // If reading the request has failed, Node has destroyed the request and removed its socket. Nothing is left to read.
      if (!this.writableEnded && isUnread(this.req) && !this.req.destroyed) readAway(this.req, bounds)
      return super.end(...(last as [])) as this
    }

    /**
     * Whether the server can read the rest of the body. It cannot if the client waits for `100 Continue` before it sends
     * the body.
     */
    #canReadAll(): boolean {
      const { headers } = this.req
      if (headers.expect !== undefined && !this.#isContinued) return false
      return Number(headers['content-length'] ?? 0) <= bounds.mostBytes
    }
  }
