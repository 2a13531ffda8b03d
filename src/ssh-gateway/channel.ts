// Writes to an SSH channel of a client, one piece after the other, and stops when the channel has closed.
import type { Writable } from 'node:stream'
import type { ServerChannel } from 'ssh2'
import type { Peer } from './peer.ts'

export class ChannelOut {
  readonly #peer: Peer
  readonly channel: ServerChannel
  #last: Promise<void> = Promise.resolve()
  #giveUp: (() => void) | undefined
  #isGone = false

  constructor(peer: Peer, channel: ServerChannel) {
    this.#peer = peer
    this.channel = channel
    // Ignore errors: after an error the channel closes, and the code that closes it calls `leave`.
    channel.on('error', () => undefined)
    channel.stderr.on('error', () => undefined)
  }

  get isGone(): boolean {
    return this.#isGone
  }

  /** Call this when the channel or its connection has closed. */
  leave(): void {
    this.#isGone = true
    this.#giveUp?.()
    this.#peer.unwatch(this.channel)
  }

  /** Writes a piece after all earlier pieces. Resolves when the next piece may be written. */
  write(stream: Writable, data: Buffer): Promise<void> {
    return this.after(async () => {
      await this.#peer.untilReady()
      if (this.#isGone) return
      // If the channel closes first, `ssh2` never calls the callback of `write`. Then `leave` resolves this promise.
      await new Promise<void>((resolve) => {
        this.#giveUp = resolve
        stream.write(data, () => resolve())
      })
      this.#giveUp = undefined
    })
  }

  /** Runs `work` after all earlier writes have been accepted by the channel. */
  after(work: () => Promise<void> | void): Promise<void> {
    // A write fails only if the channel has closed, and then `leave` ends this object.
    this.#last = this.#last.then(work).catch(() => undefined)
    return this.#last
  }
}
