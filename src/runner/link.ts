// The runner's side of the link: one WebSocket to control, opened again whenever it is lost. Nothing depends on it but how
// soon things happen.
import { WebSocket } from 'ws'
import type { Logger } from '#src/kit/log.ts'
import { belowPlace } from '#src/kit/telemetry/telemetry.ts'
import type { Assignment, FromRunner, ImageAssignment, ToRunner } from '#src/wire/runner-link.ts'
import { isAssignment, isImageAssignment } from './assignment.ts'

export type LinkParts = {
  controlUrl: URL
  runnerKey: string
  /** What is said first on every connection, and again by `sayHello`. */
  hello: () => Extract<FromRunner, { type: 'hello' }>
  onAssign: (assignment: Assignment) => void
  onImage: (assignment: ImageAssignment) => void
  /** Control has heard the hello, or wants its list to be read anew. */
  onList: () => void
  onLost: () => void
  log: Logger
  reconnectMs?: { first: number; longest: number }
}

const messageBytes = 8 * 1024 * 1024
/** As much as may lie unsent before the link counts as stuck. */
const unsentBytes = 16 * 1024 * 1024
const defaultHeartbeatSeconds = 10

/** Spread, so that a hundred runners do not come back in one moment. */
const jittered = (ms: number) => ms * (0.5 + Math.random() / 2)

export class Link implements Disposable {
  readonly #parts: LinkParts
  readonly #url: URL
  #socket: WebSocket | undefined
  #isOpen = false
  #isAnswered = true
  #failures = 0
  #timer: NodeJS.Timeout | undefined
  #heartbeat: NodeJS.Timeout | undefined
  #isClosed = false

  constructor(parts: LinkParts) {
    this.#parts = parts
    this.#url = new URL('/api/runners/link', parts.controlUrl)
    this.#url.protocol = parts.controlUrl.protocol === 'https:' ? 'wss:' : 'ws:'
    this.#connect()
  }

  get isOpen() {
    return this.#isOpen
  }

  sayHello(): void {
    this.say(this.#parts.hello())
  }

  /** False: the link is down, and what has to be heard must take another way. */
  say(message: FromRunner): boolean {
    if (!this.#isOpen || !this.#socket) return false
    if (this.#socket.bufferedAmount > unsentBytes) {
      this.#socket.terminate()
      return false
    }
    this.#socket.send(JSON.stringify(message))
    return true
  }

  #connect() {
    const { runnerKey, log } = this.#parts
    const socket = new WebSocket(this.#url, {
      headers: { authorization: `Bearer ${runnerKey}` },
      handshakeTimeout: 5000,
      maxPayload: messageBytes,
      perMessageDeflate: false,
    })
    this.#socket = socket
    socket.once('open', () => {
      log.info('linked to control')
      this.#isOpen = true
      this.#failures = 0
      this.#beat(defaultHeartbeatSeconds)
      this.sayHello()
    })
    socket.on('pong', () => {
      this.#isAnswered = true
    })
    socket.on('message', (data) => this.#hear(String(data)))
    socket.on('error', (error) => {
      // Control may start later than this runner; only what goes on is worth a warning.
      log[this.#failures % 10 === 3 ? 'warn' : 'debug']({ err: error }, 'the link to control failed')
    })
    socket.once('close', (code) => this.#lost(code))
  }

  #lost(code: number) {
    const wasOpen = this.#isOpen
    this.#isOpen = false
    clearInterval(this.#heartbeat)
    if (this.#isClosed) return
    const { first, longest } = this.#parts.reconnectMs ?? { first: 100, longest: 5000 }
    const waitMs = jittered(Math.min(first * 2 ** this.#failures, longest))
    this.#failures = Math.min(this.#failures + 1, 20)
    this.#timer = setTimeout(() => this.#connect(), waitMs)
    if (!wasOpen) return
    this.#parts.log.warn({ code }, 'the link to control is lost')
    this.#parts.onLost()
  }

  /** Shows control that this runner lives, and finds out whether control still does. */
  #beat(seconds: number) {
    clearInterval(this.#heartbeat)
    this.#isAnswered = true
    this.#heartbeat = setInterval(() => {
      if (!this.#isAnswered) {
        this.#socket?.terminate()
        return
      }
      this.#isAnswered = false
      this.#socket?.ping()
      this.say({ type: 'alive' })
    }, seconds * 1000)
  }

  #hear(text: string) {
    const message = parsed(text)
    switch (message?.type) {
      case 'welcome':
        if (message.heartbeatSeconds > 0) this.#beat(Math.min(message.heartbeatSeconds, 60))
        return
      case 'list':
        this.#parts.onList()
        return
      case 'assign':
        if (isAssignment(message.assignment)) belowPlace(message, () => this.#parts.onAssign(message.assignment))
        else this.#parts.log.error('control sent an assignment that the runner cannot read')
        return
      case 'image':
        if (isImageAssignment(message.assignment)) this.#parts.onImage(message.assignment)
        else this.#parts.log.error('control asked for an image that the runner cannot read')
        return
      default:
        // A newer control may say more than this runner knows.
        this.#parts.log.warn('control sent a message that the runner does not know')
    }
  }

  [Symbol.dispose]() {
    this.#isClosed = true
    clearTimeout(this.#timer)
    clearInterval(this.#heartbeat)
    this.#socket?.terminate()
  }
}

const parsed = (text: string): ToRunner | undefined => {
  try {
    return JSON.parse(text) ?? undefined
  } catch {
    return undefined
  }
}
