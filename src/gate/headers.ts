// Which headers cross the gate. Headers are kept as they came, in order and with repetitions; left out are those that
// belong to one connection (RFC 9110 §7.6.1), and what a destination does not want.
import type { IncomingMessage } from 'node:http'

const ofOneConnection = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

/**
 * What tells everybody on the way how a message is read belongs to no one connection, whatever its `Connection` header says
 * (RFC 9110 §7.6.1): without its length a message would be framed otherwise than whoever passes it on believes.
 */
const isForAll = (name: string) => name.startsWith('content-') || name === 'cache-control'

/** The headers that one connection's own `Connection` header names. */
const namedByConnection = ({ headers }: IncomingMessage) => {
  const names = (headers.connection ?? '').split(',').map((name) => name.trim().toLowerCase())
  return new Set(names.filter((name) => !isForAll(name)))
}

export const crossing = (message: IncomingMessage, isKept: (name: string, value: string) => boolean): string[] => {
  const named = namedByConnection(message)
  const { rawHeaders } = message
  const kept: string[] = []
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]!.toLowerCase()
    const value = rawHeaders[at + 1]!
    if (!ofOneConnection.has(name) && !named.has(name) && isKept(name, value)) kept.push(rawHeaders[at]!, value)
  }
  return kept
}

/** How the body, if any, is framed towards the destination: as long as the caller said, or in pieces. */
export const framing = ({ headers, method }: IncomingMessage): string[] => {
  if (headers['content-length'] !== undefined) return ['Content-Length', headers['content-length']]
  if (headers['transfer-encoding'] !== undefined) return ['Transfer-Encoding', 'chunked']
  return method === 'GET' || method === 'HEAD' ? [] : ['Content-Length', '0']
}

export const upgrading = ({ headers }: IncomingMessage): string[] => [
  'Connection',
  'Upgrade',
  'Upgrade',
  headers.upgrade ?? '',
]
