// Ends connections whose last answer we write to the socket directly: after an upgrade, and to clients that do not
// speak HTTP.
import type { Duplex } from 'node:stream'

/** Writes a status line and headers in the form of HTTP/1.1. */
export const headOf = (status: number, message: string, headers: readonly string[]): string => {
  const lines = [`HTTP/1.1 ${status} ${message}`]
  for (let at = 0; at + 1 < headers.length; at += 2) lines.push(`${headers[at]}: ${headers[at + 1]}`)
  return `${lines.join('\r\n')}\r\n\r\n`
}

const lingerMs = 5000

/**
 * Closes a connection after its last answer. Incoming bytes are discarded until the peer closes too, for at most
 * `withinMs`. If we closed with unread bytes, the connection would be reset and the answer lost.
 */
export const endSoon = (socket: Duplex, withinMs = lingerMs): void => {
  const timer = setTimeout(() => socket.destroy(), withinMs).unref()
  socket
    .once('close', () => clearTimeout(timer))
    .resume()
    .end()
}

/** Status for each error code of Node's HTTP parser. Every other error is a 400. */
const statuses: Record<string, [number, string]> = {
  HPE_HEADER_OVERFLOW: [431, 'Request Header Fields Too Large'],
  HPE_CHUNK_EXTENSIONS_OVERFLOW: [413, 'Payload Too Large'],
  ERR_HTTP_REQUEST_TIMEOUT: [408, 'Request Timeout'],
}

/** Handler for a server's `clientError`. A peer that has sent no byte gets no answer. */
export const refuseBadHttp = (error: NodeJS.ErrnoException, socket: Duplex, withinMs?: number): void => {
  const isSilent = (socket as { bytesRead?: number }).bytesRead === 0
  if (!socket.writable || error.code === 'ECONNRESET' || isSilent) return void socket.destroy()
  const [status, message] = statuses[error.code ?? ''] ?? [400, 'Bad Request']
  socket.write(headOf(status, message, ['Connection', 'close', 'Content-Length', '0']))
  endSoon(socket, withinMs)
}
