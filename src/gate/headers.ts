// The headers that pass the gate. They keep their order and repetitions. Left out are headers that belong to one connection (RFC
// 9110 §7.6.1), and those that a destination does not want.
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
 * Whether a header says how a message is read. Such headers always pass, even if the `Connection` header names them (RFC 9110
 * §7.6.1). Otherwise a body would be passed on without its length, and the next server could read one message as two.
 */
const isForAll = (name: string) => name.startsWith('content-') || name === 'cache-control'

/** Names of the headers that belong to this connection only, from its `Connection` header. */
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

/** The framing of the body for the destination: the caller's length, or chunked. */
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
