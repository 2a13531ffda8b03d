// Starts the SSH gateway: it listens, limits the number of connections, and passes each of them to the library `ssh2`.
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import ssh2 from 'ssh2'
import { Budget } from '#src/kit/budget.ts'
import { systemClock } from '#src/kit/clock.ts'
import type { Logger } from '#src/kit/log.ts'
import { Attempts } from './attempts.ts'
import type { SshGatewayConfig } from './config.ts'
import { ClientConnection } from './connection.ts'
import { type Place, type PlaceBounds, Places } from './places.ts'
import { Tokens } from './tokens.ts'

/** How long a client may take to sign in, in ms. */
const signInMs = 20_000
/** Maximum number of connections to one sandbox, so that one user cannot use up all connections. */
const mostOfSandbox = 64
/** Interval in ms at which control is asked whether a connected client's token is still valid. */
const watchMs = 3000
const keepaliveMs = 20_000
const missedKeepalives = 6

/**
 * The algorithms that clients may choose. Node's own OpenSSL implements each of them. Compression is off, because a small packet
 * could become a very large one.
 */
const algorithms = {
  kex: [
    'curve25519-sha256',
    'curve25519-sha256@libssh.org',
    'ecdh-sha2-nistp256',
    'ecdh-sha2-nistp384',
    'diffie-hellman-group14-sha256',
  ],
  cipher: ['aes128-gcm@openssh.com', 'aes256-gcm@openssh.com', 'aes128-ctr', 'aes192-ctr', 'aes256-ctr'],
  hmac: ['hmac-sha2-256-etm@openssh.com', 'hmac-sha2-512-etm@openssh.com', 'hmac-sha2-256', 'hmac-sha2-512'],
  compress: ['none'],
} satisfies ssh2.ServerConfig['algorithms']

export type SshGatewayBounds = PlaceBounds & { signInMs?: number; watchMs?: number }

export type SshGateway = { port: number; close: () => Promise<void> }

export const startSshGateway = async (
  { listen, controlUrl, gateUrl, key, hostKey }: Omit<SshGatewayConfig, 'telemetry'>,
  log: Logger,
  bounds: SshGatewayBounds = {},
): Promise<SshGateway> => {
  const places = new Places(bounds)
  const attempts = new Attempts(systemClock)
  const tokens = new Tokens({ controlUrl, key })
  const inSandboxes = new Budget({ each: mostOfSandbox })
  const open = new Set<Socket>()
  const placeOf = new WeakMap<Socket, Place>()

  const ssh = new ssh2.Server(
    {
      hostKeys: [`${hostKey.trim()}\n`],
      ident: 'Alcove',
      algorithms: algorithms as ssh2.Algorithms,
      keepaliveInterval: keepaliveMs,
      keepaliveCountMax: missedKeepalives,
    },
    (client) => {
      const socket = (client as unknown as { _sock: Socket })._sock
      const place = placeOf.get(socket)
      if (place === undefined) return socket.destroy()
      new ClientConnection(client, {
        gateUrl,
        tokens,
        log,
        watchMs: bounds.watchMs ?? watchMs,
        onWrong: () => attempts.noteWrong(place.network),
        onSignedIn: (sandboxId) => {
          if (socket.destroyed || !inSandboxes.take(sandboxId)) return false
          socket.once('close', () => inSandboxes.give(sandboxId))
          place.settle()
          signedIn.add(socket)
          return true
        },
      })
    },
  )
  const signedIn = new WeakSet<Socket>()

  const server = createServer({ noDelay: true }, (socket) => {
    socket.on('error', () => socket.destroy())
    const place = socket.remoteAddress === undefined ? undefined : places.take(socket, socket.remoteAddress)
    if (place === undefined || attempts.isBarred(place.network)) return void socket.destroy()
    placeOf.set(socket, place)
    open.add(socket)
    const late = setTimeout(() => {
      if (!signedIn.has(socket)) socket.destroy()
    }, bounds.signInMs ?? signInMs).unref()
    socket.once('close', () => {
      clearTimeout(late)
      open.delete(socket)
    })
    ssh.injectSocket(socket)
  })
  server.listen(listen)
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  log.info({ host: listen.host, port }, 'serving')
  return {
    port,
    close: async () => {
      const closed = once(server, 'close')
      server.close()
      for (const socket of open) socket.destroy()
      await closed
      await tokens[Symbol.asyncDispose]()
    },
  }
}
