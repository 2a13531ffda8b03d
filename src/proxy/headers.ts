// Which headers cross the proxy. Headers are kept as they came, in order and with repetitions; left out are those that
// belong to one connection (RFC 9110 §7.6.1), those that carry the caller's credentials, and those that say who calls.
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
const notForSandboxes = new Set(['authorization', 'cookie', 'expect', 'host', 'content-length'])

/** The headers that one connection's own `Connection` header names. */
const namedByConnection = ({ headers }: IncomingMessage) =>
  new Set((headers.connection ?? '').split(',').map((name) => name.trim().toLowerCase()))

const crossing = (message: IncomingMessage, isKept: (name: string) => boolean): string[] => {
  const named = namedByConnection(message)
  const { rawHeaders } = message
  const kept: string[] = []
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]!.toLowerCase()
    if (!ofOneConnection.has(name) && !named.has(name) && isKept(name)) kept.push(rawHeaders[at]!, rawHeaders[at + 1]!)
  }
  return kept
}

const isForToolbox = (name: string) =>
  !notForSandboxes.has(name) && !name.startsWith('x-daytona-') && !name.startsWith('x-service-')

/** How the body, if any, is framed towards the runner: as long as the caller said, or in pieces. */
const framing = ({ headers, method }: IncomingMessage): string[] => {
  if (headers['content-length'] !== undefined) return ['Content-Length', headers['content-length']]
  if (headers['transfer-encoding'] !== undefined) return ['Transfer-Encoding', 'chunked']
  return method === 'GET' || method === 'HEAD' ? [] : ['Content-Length', '0']
}

export const headersForToolbox = (request: IncomingMessage): string[] => [
  'Host',
  'toolbox',
  ...crossing(request, isForToolbox),
  ...framing(request),
]

export const upgradeHeadersForToolbox = (request: IncomingMessage): string[] => [
  'Host',
  'toolbox',
  ...crossing(request, isForToolbox),
  'Connection',
  'Upgrade',
  'Upgrade',
  request.headers.upgrade ?? '',
]

/** CORS is the proxy's to say, so a sandbox cannot loosen it. */
export const headersForCaller = (answer: IncomingMessage): string[] =>
  crossing(answer, (name) => !name.startsWith('access-control-'))

export const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
