// Closes connections whose last answer was written directly to the socket. The answer refuses an upgrade, or goes to a client that
// does not speak HTTP.
import type { Duplex } from 'node:stream'

/** Returns the head of an answer in the form of HTTP/1.1: status line and headers. */
export const headOf = (status: number, message: string, headers: readonly string[]): string => {
  const lines = [`HTTP/1.1 ${status} ${message}`]
  for (let at = 0; at + 1 < headers.length; at += 2) lines.push(`${headers[at]}: ${headers[at + 1]}`)
  return `${lines.join('\r\n')}\r\n\r\n`
}

const lingerMs = 5000

/**
 * Ends a connection after its last answer. For at most `withinMs`, still reads and drops what the client sends. If bytes stayed
 * unread, the kernel would reset the connection, and the answer would be lost.
 */
export const endSoon = (socket: Duplex, withinMs = lingerMs): void => {
  const timer = setTimeout(() => socket.destroy(), withinMs).unref()
  socket
    .once('close', () => clearTimeout(timer))
    .resume()
    .end()
}

/** The status that answers each error of Node's HTTP parser. Any error that is not listed gets 400. */
const statuses: Record<string, [number, string]> = {
  HPE_HEADER_OVERFLOW: [431, 'Request Header Fields Too Large'],
  HPE_CHUNK_EXTENSIONS_OVERFLOW: [413, 'Payload Too Large'],
  ERR_HTTP_REQUEST_TIMEOUT: [408, 'Request Timeout'],
}

/** Handles a server's event `clientError`. A client that has sent no byte, or whose TLS handshake has failed, gets no answer. */
export const refuseBadHttp = (error: NodeJS.ErrnoException, socket: Duplex, withinMs?: number): void => {
  const isSilent = (socket as { bytesRead?: number }).bytesRead === 0
  const hasNoTls = /^ERR_(SSL|TLS)_/.test(error.code ?? '')
  if (!socket.writable || error.code === 'ECONNRESET' || isSilent || hasNoTls) return void socket.destroy()
  const [status, message] = statuses[error.code ?? ''] ?? [400, 'Bad Request']
  socket.write(headOf(status, message, ['Connection', 'close', 'Content-Length', '0']))
  endSoon(socket, withinMs)
}
