// The runner's side of the link: one WebSocket to control. Nothing depends on it but how soon things happen.
import { LastingSocket, type LastingSocketParts } from '#src/kit/lasting-socket.ts'
import type { Logger } from '#src/kit/log.ts'
import { belowPlace } from '#src/kit/telemetry/telemetry.ts'
import type { Assignment, FromRunner, ImageAssignment, ToRunner } from '#src/wire/runner-link.ts'
import { isAssignment, isImageAssignment, isWelcome, placeIn } from './assignment.ts'

type LinkParts = {
  controlUrl: URL
  runnerKey: string
  /** The first message on every connection; `sayHello` sends it again. */
  hello: () => Extract<FromRunner, { type: 'hello' }>
  onAssign: (assignment: Assignment) => void
  onImage: (assignment: ImageAssignment) => void
  /** Which one control serves; told on every connection, before anything else. False: nothing more is to be heard of it. */
  onDatabase?: (databaseId: string) => boolean
  /** Control has heard the hello, or wants its list to be read anew. */
  onList: () => void
  onLost: () => void
  log: Logger
  reconnectMs?: LastingSocketParts['reconnectMs']
}

export class Link implements Disposable {
  readonly #parts: LinkParts
  readonly #socket: LastingSocket
  #isOver = false

  constructor(parts: LinkParts) {
    this.#parts = parts
    const { controlUrl, runnerKey, onLost, log, reconnectMs } = parts
    this.#socket = new LastingSocket({
      url: new URL('/api/runners/link', controlUrl),
      key: runnerKey,
      name: 'control',
      log,
      onOpen: () => this.sayHello(),
      onText: (text) => this.#hear(text),
      onLost,
      // Shows control that this runner lives.
      onBeat: () => this.say({ type: 'alive' }),
      ...(reconnectMs === undefined ? {} : { reconnectMs }),
    })
  }

  get isOpen() {
    return this.#socket.isOpen
  }

  sayHello(): void {
    this.say(this.#parts.hello())
  }

  /** False: the link is down, and what has to be heard must take another way. */
  say(message: FromRunner): boolean {
    return this.#socket.say(JSON.stringify(message))
  }

  #hear(text: string) {
    if (this.#isOver) return
    const message = parsed(text)
    switch (message?.type) {
      case 'welcome':
        if (!isWelcome(message)) this.#parts.log.error('control sent a welcome that the runner cannot read')
        // What follows may lie in the same piece of the network as this, and would be done by a runner that is about to end.
        else if (message.databaseId !== undefined && this.#parts.onDatabase?.(message.databaseId) === false)
          this.#isOver = true
        else if (message.heartbeatSeconds > 0) this.#socket.beat(Math.min(message.heartbeatSeconds, 60))
        return
      case 'list':
        this.#parts.onList()
        return
      case 'assign':
        if (isAssignment(message.assignment))
          belowPlace(placeIn(message), () => this.#parts.onAssign(message.assignment))
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
    this.#socket[Symbol.dispose]()
  }
}

const parsed = (text: string): ToRunner | undefined => {
  try {
    return JSON.parse(text) ?? undefined
  } catch {
    return undefined
  }
}
