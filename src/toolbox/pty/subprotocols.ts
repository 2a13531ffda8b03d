// Options that a client sends as WebSocket subprotocols, because some runtimes cannot set headers on a WebSocket.
import type { IncomingMessage } from 'node:http'
import { Problem } from '#src/problems.ts'
import { checkEnvironment } from '#src/toolbox/running/environment.ts'

/** Subprotocol that is offered by clients that understand the `exited` message. */
export const exitControl = 'X-Daytona-Pty-Exit-Control'
/** Prefix of the subprotocol that carries the shell's variables: a JSON object in base64url without padding. */
const envsPrefix = 'X-Daytona-Pty-Envs~'

const offeredBy = ({ headers }: Pick<IncomingMessage, 'headers'>): string[] =>
  (headers['sec-websocket-protocol'] ?? '').split(',').map((name) => name.trim())

const bad = (why: string) => new Problem('bad_request', `The subprotocol ${envsPrefix}… ${why}.`)

const decode = (token: string): unknown => {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(Buffer.from(token, 'base64url')))
  } catch (cause) {
    throw new Problem('bad_request', `The subprotocol ${envsPrefix}… must be JSON in base64url.`, { cause })
  }
}

const isPlainText = (value: unknown): boolean => typeof value === 'string' && !value.includes('\0')

/** Reads the shell's variables from a subprotocol name that the client offers. Throws a 400 if that name is invalid. */
export const readEnvs = (request: Pick<IncomingMessage, 'headers'>): Record<string, string> => {
  const token = offeredBy(request).find((name) => name.startsWith(envsPrefix))
  if (token === undefined) return {}
  const envs = decode(token.slice(envsPrefix.length))
  if (typeof envs !== 'object' || envs === null || Array.isArray(envs)) throw bad('must hold a JSON object')
  if (!Object.values(envs).every(isPlainText)) throw bad('must hold texts without NUL only')
  checkEnvironment(envs as Record<string, string>)
  return envs as Record<string, string>
}
