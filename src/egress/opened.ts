// A connection that the proxy for secrets decrypts. One TLS connection leads to the program in the sandbox, another one to the real
// server.
import type { TLSSocket } from 'node:tls'
import type { KnownSecret } from '#src/wire/secrets.ts'

export type Protocol = 'h2' | 'http/1.1'

export type Opened = {
  /** The server name of the connection, in lower case. Every request must be for this server. */
  serverName: string
  /** The secrets that the sandbox may send to this server now. They may change while the connection is open. */
  secrets: () => readonly KnownSecret[]
  /** The verified connection to the server, or the sentence that answers every request because the connection failed. */
  server: { socket: TLSSocket; connectAgain: () => TLSSocket } | { failure: string }
}

/** Status and sentence of an answer that the proxy for secrets gives itself. */
export type OwnAnswer = { status: 400 | 405 | 421 | 431 | 502; message: string }

export const ownAnswers = {
  misdirected: { status: 421, message: 'The request is for another host than the TLS connection.' },
  tooLarge: { status: 431, message: 'The head of the request is too large with its secrets inserted.' },
  tunnel: { status: 405, message: 'CONNECT is not possible over a connection that carries secrets.' },
  lost: { status: 502, message: 'The server ended the connection before it answered.' },
} as const satisfies Record<string, OwnAnswer>

export const bodyOf = ({ status, message }: OwnAnswer): string =>
  `${JSON.stringify({ statusCode: status, message: `Alcove secrets: ${message}` })}\n`

/** Whether a Host header or an `:authority` names the server of the connection. */
export const isFor = ({ serverName }: Opened, host: string | undefined): boolean =>
  host !== undefined && host.toLowerCase().replace(/:443$/, '').replace(/\.$/, '') === serverName

/**
 * Whether a header of a server's answer must be removed: it would lead the client to HTTP/3, which bypasses the proxy
 * for secrets.
 */
export const leadsAway = (name: string): boolean => name.toLowerCase() === 'alt-svc'
