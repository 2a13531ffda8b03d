// Ends connections whose last words are written by hand: after an upgrade, and to whoever does not speak HTTP.
import type { Duplex } from 'node:stream'

/** A status line and headers as they go over the wire. */
export const headOf = (status: number, message: string, headers: readonly string[]): string => {
  const lines = [`HTTP/1.1 ${status} ${message}`]
  for (let at = 0; at + 1 < headers.length; at += 2) lines.push(`${headers[at]}: ${headers[at + 1]}`)
  return `${lines.join('\r\n')}\r\n\r\n`
}

const lingerMs = 5000

/**
 * Closes a connection after its last words. Until its other side has closed too, at most `withinMs`, what still comes is read
 * away: a connection that is closed with something unread is reset, and the words are lost.
 */
export const endSoon = (socket: Duplex, withinMs = lingerMs): void => {
  const timer = setTimeout(() => socket.destroy(), withinMs).unref()
  socket
    .once('close', () => clearTimeout(timer))
    .resume()
    .end()
}

/** What Node cannot read as HTTP, by its error codes; everything else is a plain 400. */
const statuses: Record<string, [number, string]> = {
  HPE_HEADER_OVERFLOW: [431, 'Request Header Fields Too Large'],
  HPE_CHUNK_EXTENSIONS_OVERFLOW: [413, 'Payload Too Large'],
  ERR_HTTP_REQUEST_TIMEOUT: [408, 'Request Timeout'],
}

/** For a server's `clientError`. A peer that has never said anything is told nothing. */
export const refuseBadHttp = (error: NodeJS.ErrnoException, socket: Duplex, withinMs?: number): void => {
  const isSilent = (socket as { bytesRead?: number }).bytesRead === 0
  if (!socket.writable || error.code === 'ECONNRESET' || isSilent) return void socket.destroy()
  const [status, message] = statuses[error.code ?? ''] ?? [400, 'Bad Request']
  socket.write(headOf(status, message, ['Connection', 'close', 'Content-Length', '0']))
  endSoon(socket, withinMs)
}
