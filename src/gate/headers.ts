// Chooses the headers that the gate passes on. The gate leaves out headers of one connection (RFC 9110 §7.6.1), and headers that
// the receiver must not get.
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
 * Whether a header passes even if the `Connection` header names it. Without `Content-Length`, the receiver could read the body
 * as a second message.
 */
const isForAll = (name: string) => name.startsWith('content-') || name === 'cache-control'

/**
 * Returns the names in the header `Connection`, except names that always pass. Headers with the returned names apply to one
 * connection only.
 */
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

/**
 * Returns the header that says where the body ends, for the destination: the caller's `Content-Length`, or `chunked`.
 */
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
