// The runner's end of the link, a WebSocket to control. Without a connection, the runner sends reports over HTTP, and gets new
// assignments when it fetches control's lists (listing.ts).
import type { Credential } from '#src/kit/credential.ts'
import { LastingSocket, type LastingSocketParts } from '#src/kit/lasting-socket.ts'
import type { Logger } from '#src/kit/log.ts'
import { belowPlace } from '#src/kit/telemetry/telemetry.ts'
import type { ImageStorage } from '#src/wire/image-storage.ts'
import {
  type Assignment,
  closedForVersion,
  type FromRunner,
  type ImageAssignment,
  type ToRunner,
  type VolumeAssignment,
} from '#src/wire/runner-link.ts'
import type { SecretsOfRunner } from '#src/wire/secrets.ts'
import {
  isAssignment,
  isImageAssignment,
  isSecretsOfRunner,
  isVolumeAssignment,
  isWelcome,
  placeIn,
} from './assignment.ts'

type LinkParts = {
  controlUrl: URL
  credential: Credential
  /**
   * Returns the first message on every connection, which describes this runner. `sayHello` sends the message again after a change.
   */
  hello: () => Extract<FromRunner, { type: 'hello' }>
  /** Returns the disk space of images, which each heartbeat reports. */
  imageStorage?: () => ImageStorage
  onAssign: (assignment: Assignment) => void
  onImage: (assignment: ImageAssignment) => void
  onVolume?: (assignment: VolumeAssignment) => void
  onSecrets?: (secrets: SecretsOfRunner) => void
  /**
   * Returns whether this runner belongs to control's database. Called first on every connection. After false, all further messages
   * are ignored.
   */
  onDatabase?: (databaseId: string) => boolean
  /** Called when control refuses this runner's version. No further connection is opened. */
  onVersionRefused?: (reason: string) => void
  /**
   * Called when control asks the runner to fetch four lists: sandboxes, images, volumes, secrets. Control asks after each `hello`.
   */
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
    const { controlUrl, credential, imageStorage, onLost, log, reconnectMs } = parts
    this.#socket = new LastingSocket({
      url: new URL('/api/runners/link', controlUrl),
      credential,
      name: 'control',
      log,
      onOpen: () => this.sayHello(),
      onText: (text) => this.#hear(text),
      onLost,
      onClosed: (code, reason) => {
        if (code !== closedForVersion) return true
        this.#isOver = true
        this.#parts.onVersionRefused?.(reason)
        return false
      },
      onBeat: () => this.say({ type: 'alive', ...(imageStorage ? { imageStorage: imageStorage() } : {}) }),
      ...(reconnectMs === undefined ? {} : { reconnectMs }),
    })
  }

  get isOpen() {
    return this.#socket.isOpen
  }

  sayHello(): void {
    this.say(this.#parts.hello())
  }

  /** Sends a message. Returns false if the link is not connected; the caller must then deliver the message in another way. */
  say(message: FromRunner): boolean {
    return this.#socket.say(JSON.stringify(message))
  }

  #hear(text: string) {
    if (this.#isOver) return
    const message = parsed(text)
    switch (message?.type) {
      case 'welcome':
        if (!isWelcome(message)) this.#parts.log.error('control sent a welcome that the runner cannot read')
        // If this runner does not belong to control's database, the runner is about to exit. Until then, it ignores all messages.
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
      case 'volume':
        if (isVolumeAssignment(message.assignment)) this.#parts.onVolume?.(message.assignment)
        else this.#parts.log.error('control asked for the removal of a volume that the runner cannot read')
        return
      case 'secrets':
        if (isSecretsOfRunner(message.secrets)) this.#parts.onSecrets?.(message.secrets)
        else this.#parts.log.error('control told secrets that the runner cannot read')
        return
      default:
        // A newer version of control may send messages of types that this version of the runner does not know.
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
