// A WebSocket to one of our servers, which connects again after a loss. Messages may get lost meanwhile. Programs must therefore
// work without the WebSocket, only more slowly.
import { WebSocket } from 'ws'
import type { Credential } from './credential.ts'
import type { Logger } from './log.ts'

export type LastingSocketParts = {
  /** The URL of the server's WebSocket. Its scheme is `http:` or `https:`, and not `ws:` or `wss:`. */
  url: URL
  credential: Credential
  /** Name of the server, for the log. */
  name: string
  log: Logger
  onOpen?: () => void
  onText: (text: string) => void
  /** Called when an open connection is lost. */
  onLost?: () => void
  /** Called when a connection has ended. If it returns false, no new connection is opened. */
  onClosed?: (code: number, reason: string) => boolean
  /** Called each time that this program sends a ping. */
  onBeat?: () => void
  reconnectMs?: { first: number; longest: number }
}

const messageBytes = 8 * 1024 * 1024
/** If more bytes than this wait to be sent, the connection counts as lost. */
const unsentBytes = 16 * 1024 * 1024
const defaultBeatSeconds = 10

/** Makes a delay partly random, so that a hundred clients do not reconnect at the same moment. */
const jittered = (ms: number) => ms * (0.5 + Math.random() / 2)

const asSocketUrl = (url: URL): URL => {
  const socketUrl = new URL(url)
  socketUrl.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:'
  return socketUrl
}

export class LastingSocket implements Disposable {
  readonly #parts: LastingSocketParts
  #socket: WebSocket | undefined
  #isOpen = false
  #isAnswered = true
  #failures = 0
  #timer: NodeJS.Timeout | undefined
  #heartbeat: NodeJS.Timeout | undefined
  #isClosed = false

  constructor(parts: LastingSocketParts) {
    this.#parts = parts
    this.#connect()
  }

  get isOpen() {
    return this.#isOpen
  }

  /** Sends a text. Returns false if there is no open connection. */
  say(text: string): boolean {
    if (!this.#isOpen || !this.#socket) return false
    if (this.#socket.bufferedAmount > unsentBytes) {
      this.#socket.terminate()
      return false
    }
    this.#socket.send(text)
    return true
  }

  /** Sets the seconds between two pings, by default 10. If a ping has no answer when the next ping is due, the connection ends. */
  beat(seconds: number): void {
    clearInterval(this.#heartbeat)
    this.#isAnswered = true
    this.#heartbeat = setInterval(() => {
      if (!this.#isAnswered) {
        this.#socket?.terminate()
        return
      }
      this.#isAnswered = false
      this.#socket?.ping()
      this.#parts.onBeat?.()
    }, seconds * 1000)
  }

  /** Returns the options for TLS. Undefined: a file of the certificate cannot be read now. */
  #tlsOptions() {
    try {
      return this.#parts.credential.tls?.() ?? {}
    } catch (error) {
      this.#parts.log.error({ err: error }, 'the certificate of this program cannot be read')
      return undefined
    }
  }

  #connect() {
    const { url, credential, name, log, onOpen, onText } = this.#parts
    const tls = this.#tlsOptions()
    if (tls === undefined) return this.#lost(0, '')
    const socket = new WebSocket(asSocketUrl(url), {
      ...tls,
      headers: credential.headers,
      handshakeTimeout: 5000,
      maxPayload: messageBytes,
      perMessageDeflate: false,
    })
    this.#socket = socket
    socket.once('open', () => {
      log.info(`linked to ${name}`)
      this.#isOpen = true
      this.#failures = 0
      this.beat(defaultBeatSeconds)
      onOpen?.()
    })
    socket.on('pong', () => {
      this.#isAnswered = true
    })
    socket.on('message', (data) => onText(String(data)))
    socket.on('error', (error) => {
      // A few failures in a row are normal, because the server may start later than this program.
      log[this.#failures % 10 === 3 ? 'warn' : 'debug']({ err: error }, `the link to ${name} failed`)
    })
    socket.once('close', (code, reason) => this.#lost(code, String(reason)))
  }

  #lost(code: number, reason: string) {
    const wasOpen = this.#isOpen
    this.#isOpen = false
    clearInterval(this.#heartbeat)
    if (this.#parts.onClosed?.(code, reason) === false) this.#isClosed = true
    if (this.#isClosed) return
    const { first, longest } = this.#parts.reconnectMs ?? { first: 100, longest: 5000 }
    const waitMs = jittered(Math.min(first * 2 ** this.#failures, longest))
    this.#failures += 1
    this.#timer = setTimeout(() => this.#connect(), waitMs)
    if (!wasOpen) return
    this.#parts.log.warn({ code }, `the link to ${this.#parts.name} is lost`)
    this.#parts.onLost?.()
  }

  [Symbol.dispose]() {
    this.#isClosed = true
    clearTimeout(this.#timer)
    clearInterval(this.#heartbeat)
    this.#socket?.terminate()
  }
}
