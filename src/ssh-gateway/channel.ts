// Writes to a channel of a client, one piece after the other, and tells when the channel is gone.
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
    // Errors of a channel come with its end.
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

  /** Writes a piece behind the earlier ones. Resolves when the client may be sent more. */
  write(stream: Writable, data: Buffer): Promise<void> {
    return this.after(async () => {
      await this.#peer.untilReady()
      if (this.#isGone) return
      // `ssh2` never calls back for a channel that has closed meanwhile.
      await new Promise<void>((resolve) => {
        this.#giveUp = resolve
        stream.write(data, () => resolve())
      })
      this.#giveUp = undefined
    })
  }

  /** Does something behind everything that was written. */
  after(work: () => Promise<void> | void): Promise<void> {
    // A failed write means that the channel has closed, which is told elsewhere.
    this.#last = this.#last.then(work).catch(() => undefined)
    return this.#last
  }
}
