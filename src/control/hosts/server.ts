// The server of the port for hosts: TLS in which both sides show a certificate of this server's authority.
import type { Server } from 'node:https'
import type { TLSSocket, TlsOptions } from 'node:tls'
import type { FastifyInstance } from 'fastify'
import type { HostAuthority } from './authority.ts'
import type { Hosts } from './connections.ts'

/** Options of the TLS server. A client without a certificate is let in, because a machine that joins has none yet. */
export const tlsOptionsOf = (authority: HostAuthority): TlsOptions => ({
  ...authority.makeOwn(),
  minVersion: 'TLSv1.3',
  requestCert: true,
  rejectUnauthorized: false,
  // Timeout of the TLS handshake, in milliseconds.
  handshakeTimeout: 10_000,
})

const checkMs = 60_000
const renewMs = 24 * 60 * 60 * 1000

/** Follows the connections of the server, and renews control's own certificate each day. */
export const followHosts = (
  server: FastifyInstance,
  { authority, connections, version }: Hosts & { version: string },
): void => {
  const tls = server.server as unknown as Server
  tls.on('secureConnection', (socket: TLSSocket) => connections.add(socket))
  const checking = setInterval(() => connections.closeEnded(), checkMs).unref()
  const renewing = setInterval(
    () => tls.setSecureContext({ ...authority.makeOwn(), minVersion: 'TLSv1.3' }),
    renewMs,
  ).unref()
  // A machine that wants to join compares the versions before it sends its token.
  server.addHook('onRequest', (_request, reply, done) => {
    reply.header('alcove-version', version)
    done()
  })
  server.addHook('onClose', async () => {
    clearInterval(checking)
    clearInterval(renewing)
  })
}
