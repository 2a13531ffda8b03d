// Opens a WebSocket to the toolbox of a sandbox, and finds out when the connection is lost.
import { addAbortSignal } from 'node:stream'
import { WebSocket } from 'ws'
import { refusalOf, unreachable } from '../call.ts'

const openMs = 30_000
const pingMs = 15_000
const mostRefusalBytes = 64 * 1024
/** Maximum size of a message. The server sends at most a few hundred KiB at a time. */
const mostMessageBytes = 8 * 1024 * 1024

const readRefusal = async (reply: AsyncIterable<Buffer>): Promise<string> => {
  let text = ''
  for await (const piece of reply) {
    text += piece.toString()
    if (text.length > mostRefusalBytes) break
  }
  return text
}

/**
 * Opens a WebSocket. It is paused, so that no message is lost before the caller listens. A refusal throws a Failure with the
 * server's message.
 */
export const openSocket = (
  url: string,
  {
    headers,
    protocol,
    signal,
  }: { headers: Record<string, string>; protocol?: string; signal?: AbortSignal | undefined },
): Promise<WebSocket> =>
  new Promise((resolve, reject) => {
    const address = url.replace(/^http/, 'ws')
    const { origin } = new URL(url)
    const socket = new WebSocket(address, protocol === undefined ? [] : [protocol], {
      headers,
      handshakeTimeout: openMs,
      maxPayload: mostMessageBytes,
      perMessageDeflate: false,
    })
    const onAbort = () => socket.terminate()
    const settle = () => signal?.removeEventListener('abort', onAbort)
    signal?.addEventListener('abort', onAbort, { once: true })
    if (signal?.aborted) onAbort()
    socket.once('open', () => {
      settle()
      socket.pause()
      socket.off('error', onError)
      resolve(socket)
    })
    const onError = (error: Error) => {
      settle()
      reject(signal?.aborted ? signal.reason : unreachable(origin, error))
    }
    socket.once('error', onError)
    // Without a listener for `error`, such an event would end the program. This listener ignores errors, because another listener
    // handles the first error.
    socket.on('error', () => {})
    socket.once('unexpected-response', (_request, reply) => {
      settle()
      // Limits the time for reading an error answer, because a server may never end the body of this answer.
      const late = AbortSignal.timeout(openMs)
      const until = signal === undefined ? late : AbortSignal.any([signal, late])
      readRefusal(addAbortSignal(until, reply))
        .then((text) => {
          const requestId = [reply.headers['x-request-id']].flat()[0]
          reject(refusalOf(origin, { status: reply.statusCode ?? 0, text, requestId }))
        })
        .catch((error) => reject(unreachable(origin, until.aborted ? until.reason : error)))
        .finally(() => socket.terminate())
    })
  })

/**
 * Sends pings, and ends the connection if the server does not answer. A paused socket receives no answers, so its connection is not
 * ended.
 */
export const keepAlive = (socket: WebSocket): void => {
  let isAlive = true
  const hear = () => {
    isAlive = true
  }
  socket.on('pong', hear).on('message', hear)
  const timer = setInterval(() => {
    if (socket.isPaused) return hear()
    if (!isAlive) return socket.terminate()
    isAlive = false
    socket.ping()
  }, pingMs)
  socket.once('close', () => clearInterval(timer))
}
