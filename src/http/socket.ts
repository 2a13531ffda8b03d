// What every WebSocket of ours has in common: it is kept alive, it is given no more than it takes, and it is closed with
// a reason that fits.
import type { RawData, WebSocket } from 'ws'

/** Proxies on the way close what is silent for a minute; half of it leaves room for one lost ping. */
const pingMs = 25_000
/** Whoever is silent for so many pings is gone, or reads nothing any more. */
const missedPings = 3

/** Pings until the socket closes, and ends it when nobody answers. */
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
 * Answers pings, of which `ws` itself would answer each at once: one pong at a time, then for the latest (RFC 6455 §5.5.3), so
 * that whoever reads nothing is not owed more and more of them.
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

/** Settles when the kernel has taken it, or the socket is gone: whoever awaits it never has more than one piece waiting. */
export const sendWhole = (socket: WebSocket, data: string | Uint8Array): Promise<void> =>
  new Promise((resolve) => {
    if (socket.readyState === socket.OPEN) socket.send(data, () => resolve())
    else resolve()
  })

/** Sends bytes from memory that is used again: true if they were taken at once, else `done` follows. */
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

/** The longest beginning of a text that fits, without half a character at its end. */
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
