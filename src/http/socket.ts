// What all of our WebSockets need: pings, senders that wait for slow readers, and a close reason of at most 123 bytes.
import type { RawData, WebSocket } from 'ws'

/** Milliseconds between two pings. Reverse proxies close a connection that is silent for a minute, and one ping may get lost. */
const pingMs = 25_000
/** After this many unanswered pings in a row, the connection counts as lost. */
const missedPings = 3

/** Sends pings until the socket is closed. If the other side does not answer them, closes the socket. */
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
 * Answers pings one after the other, and only the latest of those that wait (RFC 6455 §5.5.3). The library `ws` would
 * answer each immediately, and the answers to a client that reads nothing would fill our memory.
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
 * Sends data. Resolves when the kernel has accepted the data, or when the socket is closed. A sender that waits for this
 * has at most one piece in memory.
 */
export const sendWhole = (socket: WebSocket, data: string | Uint8Array): Promise<void> =>
  new Promise((resolve) => {
    if (socket.readyState === socket.OPEN) socket.send(data, () => resolve())
    else resolve()
  })

/**
 * Sends bytes from a buffer that the caller reuses. Returns true if the caller may overwrite the buffer immediately.
 * Otherwise, the caller must wait until `done` is called.
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

/** Cuts a text to the maximum size of a WebSocket's close reason. The cut is never inside a character. */
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
