// Adds limits to a client's connection that the library `ssh2` lacks. `ssh2` buffers without limit for three kinds of
// clients: those that send beyond the window, those that read nothing, and those that exchange keys all the time. This
// class makes such a client wait, or cuts its connection.
import type { Socket } from 'node:net'
import type { Connection, ServerChannel } from 'ssh2'

/**
 * Maximum number of bytes that wait to be sent to the client. If more wait, the gateway writes nothing more to the
 * client and reads nothing from it.
 */
const mostUnsent = 1024 * 1024
/**
 * Maximum number of bytes that a channel buffers until a sandbox reads them. An honest client may send this much: the
 * library `ssh2` lets it send 2 MiB, and another 2 MiB before the first 2 MiB are processed.
 */
const mostOfChannel = 4 * 1024 * 1024 + 64 * 1024
const mostOfConnection = 16 * 1024 * 1024
const mostOfAll = 256 * 1024 * 1024
/** A client must accept packets of at least this size. RFC 4254 has no minimum, and with a size of 0 a write would never end. */
const leastPacketBytes = 1024
/** Maximum number of key exchanges per minute. An honest client needs one per GiB or per hour. */
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
      // Run the check for a full buffer in the next turn of the event loop: the library `ssh2` sends the data that it
      // has buffered only after this event.
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

  /** Closes the connection immediately, without sending the bytes that wait. */
  cut(): void {
    this.socket.destroy()
  }

  /**
   * Begins to count the bytes that wait in a new channel. Returns false if the client's connection was closed, because
   * it allows only too small packets.
   */
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

  /**
   * Must be called after bytes were read from a channel. If the gateway had stopped reading from the client, because its channels
   * held too many bytes, it may now read again.
   */
  noteRead(): void {
    if (this.#held > 0) this.#check()
  }

  /** Resolves when bytes may be written to the client, or when the client has disconnected. */
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
