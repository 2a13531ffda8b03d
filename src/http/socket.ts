// Common parts of all our WebSockets: keep-alive pings, backpressure, and a close reason that fits its 123 bytes.
import type { RawData, WebSocket } from 'ws'

/** Milliseconds between pings. Proxies close a connection that is silent for a minute, and one ping may be lost. */
const pingMs = 25_000
/** Number of unanswered pings after which the connection counts as lost. */
const missedPings = 3

/** Sends pings until the socket closes. Closes the socket if the peer does not answer them. */
export const keepAlive = (socket: WebSocket): void => {
  let unanswered = 0
  const timer = setInterval(() => {
    if (unanswered === missedPings) return socket.terminate()
    unanswered += 1
    socket.ping()
  }, pingMs)
  const onSign = () => {
    unanswered = 0
  }
  socket.on('pong', onSign).on('message', onSign)
  socket.once('close', () => clearInterval(timer))
}

/**
 * Answers pings one at a time. Of several waiting pings, only the latest is answered (RFC 6455 §5.5.3). `ws` itself
 * would answer each ping immediately, and the pongs to a client that reads nothing would fill our memory.
 */
export const answerPings = (socket: WebSocket): void => {
  let latest: Buffer | undefined
  let isAnswering = false
  const answer = () => {
    const data = latest
    latest = undefined
    isAnswering = data !== undefined
    if (data !== undefined && socket.readyState === socket.OPEN) socket.pong(data, false, answer)
  }
  socket.on('ping', (data) => {
    latest = data
    if (!isAnswering) answer()
  })
}

/**
 * Sends data. Resolves when the kernel has taken the data or the socket is closed. A sender that awaits each call
 * queues only one piece.
 */
export const sendWhole = (socket: WebSocket, data: string | Uint8Array): Promise<void> =>
  new Promise((resolve) => {
    if (socket.readyState === socket.OPEN) socket.send(data, () => resolve())
    else resolve()
  })

/**
 * Sends bytes from memory that will be overwritten. Returns true if the memory may be overwritten immediately. If
 * false, the caller must wait for `done`.
 */
export const sendThrough = (socket: WebSocket, data: Uint8Array, done: () => void): boolean => {
  if (socket.readyState !== socket.OPEN) return true
  let isWaiting = false
  socket.send(data, () => {
    if (isWaiting) done()
  })
  isWaiting = socket.bufferedAmount > 0
  return !isWaiting
}

const reasonBytes = 123

/** Returns the longest beginning of a text that fits into a close reason, without half a character at its end. */
const fit = (text: string): string => {
  const { read } = new TextEncoder().encodeInto(text, new Uint8Array(reasonBytes))
  return text.slice(0, read)
}

export const closeWith = (socket: WebSocket, code: number, reason: string): void => {
  if (socket.readyState === socket.OPEN) socket.close(code, fit(reason))
}

export const bytesOf = (data: RawData): Buffer => {
  if (Buffer.isBuffer(data)) return data
  return Array.isArray(data) ? Buffer.concat(data) : Buffer.from(data)
}
