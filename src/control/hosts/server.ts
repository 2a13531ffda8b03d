// The TLS server of the port for hosts. Hosts and control prove who they are by certificates of the authority of this
// server.
import type { Server } from 'node:https'
import type { TLSSocket, TlsOptions } from 'node:tls'
import type { FastifyInstance } from 'fastify'
import type { HostAuthority } from './authority.ts'
import type { Hosts } from './connections.ts'

/**
 * Returns the options of the TLS server. A client without a certificate may connect, because a machine that joins has
 * no certificate yet.
 */
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

/**
 * Passes each new connection of the server to `connections`, closes connections whose certificates have expired, and
 * replaces the certificate of control each day.
 */
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
  // Before a machine sends its token to join, it reads the version of control from this header.
  server.addHook('onRequest', (_request, reply, done) => {
    reply.header('alcove-version', version)
    done()
  })
  server.addHook('onClose', async () => {
    clearInterval(checking)
    clearInterval(renewing)
  })
}
