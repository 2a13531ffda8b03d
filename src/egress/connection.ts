// Serves one connection of a sandbox with secrets. If the server may get no secret of the sandbox, all bytes are copied. If the
// server may get a secret, the sandbox's TLS connection ends at the proxy for secrets. The proxy shows a certificate that the
// organization's authority has signed. A second TLS connection leads to the server, whose certificate is verified first.
//
// The firewall has checked the destination before, so the sandbox's network policy applies.
import { connect, type Socket } from 'node:net'
import { connect as connectTls, createSecureContext, getCACertificates, type SecureContext, TLSSocket } from 'node:tls'
import { isAllowedHost, type KnownSecret } from '#src/wire/secrets.ts'
import { type ClientHello, mostHelloBytes, readClientHello } from './client-hello.ts'
import { guarded } from './guarded.ts'
import { serveHttp1 } from './http1.ts'
import { serveHttp2 } from './http2.ts'
import { joinStreams } from './join.ts'
import type { Opened, Protocol } from './opened.ts'
import type { Destination } from './original-destination.ts'

export type ConnectionParts = {
  /** Returns the current secrets of the sandbox. */
  secrets: () => readonly KnownSecret[]
  /** Resolves when the proxy for secrets has received the sandbox's secrets, or has waited too long for the secrets. */
  known: () => Promise<void>
  destination: Destination
  /**
   * Adds a sentence to the sandbox's timeline, unless a sentence about this problem was added recently. `about`: kind of problem,
   * and host.
   */
  trouble: (about: string, sentence: string) => void
}

/**
 * After this many silent milliseconds, a client is connected to its server without decryption: in some protocols the server
 * sends first.
 */
const silentMs = 1000
const helloMs = 10_000
const handshakeMs = 15_000
const connectMs = 30_000
const probeMs = 60_000

let trusted: SecureContext | undefined
/** The TLS settings for connections to servers: trust the certificate authorities that this host trusts. */
const trustedByHost = (): SecureContext => {
  trusted ??= createSecureContext({
    ca: [...new Set([...getCACertificates('default'), ...getCACertificates('system')])],
  })
  return trusted
}

const mostContexts = 1000
const contexts = new Map<string, SecureContext>()

/**
 * Returns the TLS settings with which the proxy presents a secret's certificate. Caches the settings, because making them takes a
 * millisecond.
 */
const contextOf = ({ certificate, privateKey }: KnownSecret): SecureContext => {
  const known = contexts.get(certificate)
  if (known !== undefined) return known
  if (contexts.size >= mostContexts) contexts.clear()
  const made = createSecureContext({ cert: certificate, key: privateKey })
  contexts.set(certificate, made)
  return made
}

/**
 * Reads the client's first message, and returns the message's bytes too. `other`: the message is no usable ClientHello. `silent`:
 * the client sent nothing for a while. Undefined: the connection has ended, or only a part of the message came in time.
 */
const hear = (socket: Socket): Promise<{ hello: ClientHello | 'other' | 'silent'; bytes: Buffer } | undefined> =>
  new Promise((resolve) => {
    let bytes = Buffer.alloc(0)
    const finish = (hello?: ClientHello | 'other' | 'silent') => {
      clearTimeout(silence)
      clearTimeout(late)
      socket.off('readable', read).off('end', end).off('close', end)
      resolve(hello === undefined ? undefined : { hello, bytes })
    }
    const end = () => finish()
    const read = () => {
      for (let chunk = socket.read(); chunk !== null; chunk = socket.read()) {
        bytes = Buffer.concat([bytes, chunk as Buffer])
        if (bytes.length > 2 * mostHelloBytes) break
      }
      if (bytes.length === 0) return
      clearTimeout(silence)
      const hello = readClientHello(bytes)
      if (hello !== 'more') finish(hello)
    }
    const silence = setTimeout(finish, silentMs, 'silent')
    const late = setTimeout(end, helloMs)
    socket.on('readable', read).on('end', end).on('close', end)
    read()
  })

/** Connects to the server that the sandbox wants to reach, and copies bytes in both directions unchanged. */
const pass = (socket: Socket, bytes: Buffer, { address, port }: Destination): void => {
  const server = connect({ host: address, port, allowHalfOpen: true, noDelay: true })
  const late = setTimeout(() => server.destroy(), connectMs)
  server.setKeepAlive(true, probeMs)
  server.on('connect', () => clearTimeout(late))
  server.on('close', () => clearTimeout(late))
  // If the connection to the server fails, reset the client's connection. Without the proxy for secrets, the client
  // would see a reset too.
  server.on('error', () => socket.resetAndDestroy())
  if (bytes.length > 0) server.write(bytes)
  joinStreams(socket, server)
}

const offered = ({ protocols }: ClientHello): Protocol[] => {
  const known = protocols.filter((name): name is Protocol => name === 'h2' || name === 'http/1.1')
  return known.length === 0 ? ['http/1.1'] : known
}

/** Connects to the server and verifies its certificate. */
const reach = ({ address, port }: Destination, serverName: string, protocols: Protocol[]): TLSSocket => {
  const socket = connectTls({
    ...{ host: address, port, servername: serverName, ALPNProtocols: protocols, secureContext: trustedByHost() },
  })
  socket.setNoDelay(true)
  socket.setKeepAlive(true, probeMs)
  socket.on('error', () => {})
  const late = setTimeout(() => socket.destroy(new Error('it does not answer in time')), connectMs)
  socket.once('secureConnect', () => clearTimeout(late))
  socket.once('close', () => clearTimeout(late))
  return socket
}

const secured = (socket: TLSSocket): Promise<void> =>
  new Promise((resolve, reject) => {
    socket.once('secureConnect', resolve)
    socket.once('error', reject)
    socket.once('close', () => reject(new Error('it ended the connection')))
  })

const whyOf = (error: unknown): string => {
  const { code, message } = error as { code?: string; message?: string }
  return String(code ?? message ?? 'unknown').slice(0, 100)
}

const openUp = async (
  socket: Socket,
  bytes: Buffer,
  hello: ClientHello,
  serverName: string,
  parts: ConnectionParts,
) => {
  const { destination, trouble } = parts
  const secretsFor = () => parts.secrets().filter(({ hosts }) => isAllowedHost(hosts, serverName))
  const [secret] = secretsFor()
  if (secret === undefined) return pass(socket, bytes, destination)
  const protocols = offered(hello)
  const far = reach(destination, serverName, protocols)
  socket.once('close', () => far.destroy())
  let server: Opened['server'] = {
    socket: far,
    connectAgain: () => reach(destination, serverName, ['http/1.1']),
  }
  let protocol: Protocol = protocols.includes('http/1.1') ? 'http/1.1' : 'h2'
  try {
    await secured(far)
    protocol = far.alpnProtocol === 'h2' ? 'h2' : 'http/1.1'
  } catch (error) {
    if (socket.destroyed) return
    const failure = `No TLS connection to ${serverName} can be made, so no secret was sent: ${whyOf(error)}.`
    trouble(`server ${serverName}`, failure)
    server = { failure }
  }
  if (socket.destroyed) return void far.destroy()
  socket.unshift(bytes)
  // HTTP/2 uses no half-open connections. Without this line, the connection of a killed program would stay open until its idle
  // timeout.
  if (protocol === 'h2') socket.allowHalfOpen = false
  const near = new TLSSocket(socket, {
    ...{ isServer: true, secureContext: contextOf(secret), requestCert: false },
    ALPNProtocols: [protocol],
  })
  const late = setTimeout(() => near.destroy(), handshakeMs)
  let isSecure = false
  const refused = () => {
    clearTimeout(late)
    if (isSecure) return
    far.destroy()
    trouble(
      `client ${serverName}`,
      `A program refused the certificate for ${serverName} that Alcove uses to insert secrets. The program may pin certificates or have its own list of authorities; such a program cannot use a secret.`,
    )
  }
  near.on('error', refused)
  near.on('close', refused)
  near.on('secure', () => {
    isSecure = true
    clearTimeout(late)
    // Node's HTTP/2 server waits until `secureConnecting` is false, but Node sets this property only for sockets of its own TLS
    // server.
    Object.assign(near, { secureConnecting: false })
    near.off('error', refused)
    near.on('error', () => {})
    const opened: Opened = { serverName, secrets: secretsFor, server }
    const serve = protocol === 'h2' ? serveHttp2 : serveHttp1
    guarded(serve, () => near.destroy())(near, opened)
  })
}

export const serveConnection = async (socket: Socket, parts: ConnectionParts): Promise<void> => {
  socket.on('error', () => {})
  socket.setKeepAlive(true, probeMs)
  socket.setNoDelay(true)
  const heard = await hear(socket)
  if (heard === undefined || socket.destroyed) return void socket.destroy()
  const { hello, bytes } = heard
  if (typeof hello === 'string' || hello.serverName === undefined) return pass(socket, bytes, parts.destination)
  await parts.known()
  if (socket.destroyed) return
  await openUp(socket, bytes, hello, hello.serverName, parts)
}
