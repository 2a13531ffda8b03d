// Handles the connection of one client of the SSH gateway: its sign-in, its channels, its end.
import type { Connection, ServerChannel, Session } from 'ssh2'
import type { WebSocket } from 'ws'
import type { Logger } from '#src/kit/log.ts'
import { Forward, isLoopback } from './forward.ts'
import { type GateParts, openGateSocket, Refused } from './gate-socket.ts'
import { Peer } from './peer.ts'
import { SshSession } from './session.ts'
import { ControlAway, type Opened, type Tokens } from './tokens.ts'

/** Maximum number of sign-in attempts on one connection. OpenSSH makes an attempt for each of its keys. */
const mostTries = 20
/** A wrong token is refused this many ms after it arrived, so that the delay reveals nothing about the token. */
const refusedAfterMs = 500
/** Maximum number of open channels of a connection. */
const mostChannels = 100
/** When the gateway closes a connection, the client has this many milliseconds to close it too. Then the gateway cuts it. */
const leaveMs = 1000

export type ConnectionParts = GateParts & {
  tokens: Pick<Tokens, 'find'>
  log: Logger
  /** Called at the sign-in. Returns false if the sandbox has too many connections; the client is then disconnected. */
  onSignedIn: (sandboxId: string) => boolean
  onWrong: () => void
  /** Interval in ms at which the gateway asks control whether the client's token is still valid. */
  watchMs: number
}

export class ClientConnection {
  readonly #parts: ConnectionParts
  readonly #peer: Peer
  readonly #sessions = new Set<SshSession>()
  readonly #forwards = new Set<Forward>()
  #channels = 0
  #tries = 0
  #checked: { token: string; opened: Promise<Opened | undefined> } | undefined
  #token = ''
  #sandboxId = ''

  constructor(client: Connection, parts: ConnectionParts) {
    this.#parts = parts
    this.#peer = new Peer(client)
    client.on('error', (error) => {
      parts.log.debug({ cause: error.message }, 'an SSH client was cut off')
      // `ssh2` closes only its own direction, so a client that does not read would stay connected.
      setTimeout(() => this.#peer.cut(), leaveMs).unref()
    })
    client.on('authentication', (context) => {
      this.#signIn(context.username).then(
        (isIn) => (isIn ? context.accept() : context.reject()),
        () => this.#peer.cut(),
      )
    })
    client.on('ready', () => this.#watch())
    client.on('session', (accept, reject) => this.#onSession(accept, reject))
    client.on('tcpip', (accept, reject, { destIP, destPort }) => this.#onForward(accept, reject, destIP, destPort))
    client.on('close', () => this.#leave())
  }

  async #signIn(token: string): Promise<boolean> {
    this.#tries += 1
    if (this.#tries > mostTries) throw new Error('too many tries')
    const refuseAt = new Promise((resolve) => setTimeout(resolve, refusedAfterMs))
    // A client may send its token by several sign-in methods, so control is asked only once about the same token.
    if (this.#checked?.token !== token) {
      const opened = this.#parts.tokens.find(token)
      opened.then(
        (found) => found === undefined && this.#parts.onWrong(),
        () => undefined,
      )
      this.#checked = { token, opened }
    }
    const opened = await this.#checked.opened.catch(() => undefined)
    if (opened === undefined) {
      await refuseAt
      return false
    }
    if (this.#peer.isGone || !this.#parts.onSignedIn(opened.sandboxId)) throw new Error('no room')
    this.#token = token
    this.#sandboxId = opened.sandboxId
    return true
  }

  /** Asks control at intervals whether the client's SSH token is still valid, until the client disconnects. */
  #watch(): void {
    const { log } = this.#parts
    const about = { sandboxId: this.#sandboxId, address: this.#peer.socket.remoteAddress }
    log.debug(about, 'an SSH client has signed in')
    const ask = async () => {
      const end = await this.#findEnd()
      if (this.#peer.isGone) return
      if (end === undefined) schedule()
      else {
        log.debug({ ...about, cause: end }, 'an SSH connection was ended')
        this.end(end)
      }
    }
    const schedule = () => void setTimeout(ask, this.#parts.watchMs).unref()
    schedule()
  }

  async #findEnd(): Promise<string | undefined> {
    try {
      const opened = await this.#parts.tokens.find(this.#token, { mayBeKept: true })
      if (opened === undefined) return 'The SSH token was revoked or has expired.'
      return opened.isOver ? `The sandbox is not started: it is ${opened.state}.` : undefined
    } catch (error) {
      if (error instanceof ControlAway) return undefined
      throw error
    }
  }

  /** Ends all SSH sessions of this connection with a sentence for their users, and then the connection. */
  end(sentence: string): void {
    for (const session of this.#sessions) session.end(sentence)
    setTimeout(() => {
      this.#peer.client.end()
      setTimeout(() => this.#peer.cut(), leaveMs).unref()
    }, leaveMs / 4).unref()
  }

  #leave(): void {
    for (const channel of [...this.#sessions, ...this.#forwards]) channel.leave()
    this.#sessions.clear()
    this.#forwards.clear()
  }

  readonly #openSocket = (path: string): Promise<WebSocket> =>
    openGateSocket(this.#parts, { sandboxId: this.#sandboxId, token: this.#token, path })

  #onSession(accept: () => Session, reject: () => void): void {
    if (this.#channels >= mostChannels) return void reject()
    this.#channels += 1
    const opened = accept()
    const session = new SshSession(opened, { peer: this.#peer, openSocket: this.#openSocket })
    this.#sessions.add(session)
    opened.once('close', () => {
      this.#channels -= 1
      this.#sessions.delete(session)
      session.leave()
    })
  }

  #onForward(accept: () => ServerChannel, reject: () => void, host: string, port: number): void {
    if (this.#channels >= mostChannels || !isLoopback(host) || port < 1 || port > 65_535) return void reject()
    this.#channels += 1
    this.#forward(accept, reject, port).catch((error) => {
      this.#channels -= 1
      if (!(error instanceof Refused)) this.#parts.log.debug({ err: error }, 'a port could not be forwarded')
      if (!this.#peer.isGone) reject()
    })
  }

  async #forward(accept: () => ServerChannel, reject: () => void, port: number): Promise<void> {
    const socket = await this.#openSocket(`/ssh/port?port=${port}`)
    const channel = this.#peer.isGone ? undefined : accept()
    if (channel === undefined || !this.#peer.watch(channel)) {
      socket.terminate()
      reject()
      return
    }
    const forward = new Forward(this.#peer, channel, socket)
    this.#forwards.add(forward)
    channel.stderr.once('finish', () => {
      this.#channels -= 1
      this.#forwards.delete(forward)
    })
  }
}
