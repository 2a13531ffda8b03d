// The connection of a client, with the bounds that `ssh2` does not have. `ssh2` takes what a client sends beyond the window, writes
// to a socket that nobody reads, and keeps what is written during a key exchange. Here such a client waits, or is cut off.
import type { Socket } from 'node:net'
import type { Connection, ServerChannel } from 'ssh2'

/** Bytes that wait for the client. Above them nothing more is written, and nothing more is read. */
const mostUnsent = 1024 * 1024
/** Bytes that channels hold until a sandbox takes them. `ssh2` announces a window of 2 MiB, twice if half of it was read. */
const mostOfChannel = 4 * 1024 * 1024 + 64 * 1024
const mostOfConnection = 16 * 1024 * 1024
const mostOfAll = 256 * 1024 * 1024
/** Packets of a client must be allowed to have this size. RFC 4254 has no minimum, and a size of 0 would never be done. */
const leastPacketBytes = 1024
/** Key exchanges per minute. A client needs one for each GiB or hour. */
const mostExchanges = 30

type Inner = { _sock: Socket; _protocol: { _kexinit?: unknown } }

let heldByAll = 0

export class Peer {
  readonly client: Connection
  readonly socket: Socket
  readonly #channels = new Set<ServerChannel>()
  readonly #waiting = new Set<() => void>()
  #held = 0
  #exchanges = 0
  #isGone = false

  constructor(client: Connection) {
    this.client = client
    this.socket = (client as unknown as Inner)._sock
    const { socket } = this
    socket.on('data', () => this.#check())
    socket.on('drain', () => this.#check())
    client.on('handshake', () => {
      this.#exchanges += 1
      if (this.#exchanges > mostExchanges) this.cut()
      // `ssh2` sends what it kept after this event.
      setImmediate(() => this.#check())
    })
    const timer = setInterval(() => {
      this.#exchanges = 0
    }, 60_000).unref()
    const onGone = () => {
      if (this.#isGone) return
      this.#isGone = true
      clearInterval(timer)
      heldByAll -= this.#held
      this.#held = 0
      this.#wake()
    }
    client.on('close', onGone)
    socket.once('close', onGone)
  }

  get isGone(): boolean {
    return this.#isGone
  }

  /** Ends the connection at once. */
  cut(): void {
    this.socket.destroy()
  }

  /** Watches a channel that was just accepted. Returns false if the client was cut off. */
  watch(channel: ServerChannel): boolean {
    const { outgoing } = channel as unknown as { outgoing: { packetSize: number } }
    if (outgoing.packetSize < leastPacketBytes) {
      this.cut()
      return false
    }
    this.#channels.add(channel)
    return true
  }

  unwatch(channel: ServerChannel): void {
    this.#channels.delete(channel)
    this.#check()
  }

  /** Call this after bytes were read from a channel. */
  noteRead(): void {
    if (this.#held > 0) this.#check()
  }

  /** Resolves when the client takes bytes, or is gone. */
  async untilReady(): Promise<void> {
    while (!this.#isGone && this.#isFull()) await new Promise<void>((resolve) => this.#waiting.add(resolve))
  }

  #isFull(): boolean {
    const { _protocol: protocol } = this.client as unknown as Inner
    return this.socket.writableLength > mostUnsent || protocol._kexinit !== undefined
  }

  #wake(): void {
    const waiting = [...this.#waiting]
    this.#waiting.clear()
    for (const resolve of waiting) resolve()
  }

  #check(): void {
    if (this.#isGone) return
    let held = 0
    for (const { readableLength } of this.#channels) {
      if (readableLength > mostOfChannel) return void this.cut()
      held += readableLength
    }
    heldByAll += held - this.#held
    this.#held = held
    if (heldByAll > mostOfAll && held > mostOfConnection / 16) return void this.cut()
    const mustWait = held > mostOfConnection || this.socket.writableLength > mostUnsent
    if (mustWait) this.socket.pause()
    else if (this.socket.isPaused()) this.socket.resume()
    if (!this.#isFull()) this.#wake()
  }
}
