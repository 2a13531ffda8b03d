// Adds limits to a client's connection. The library `ssh2` buffers without limit for clients that send beyond the window, read
// nothing, or exchange keys all the time. This class makes them wait, or cuts the connection.
import type { Socket } from 'node:net'
import type { Connection, ServerChannel } from 'ssh2'

/**
 * Maximum number of bytes that wait for the client. Above this number, the gateway neither writes to the client nor reads from it.
 */
const mostUnsent = 1024 * 1024
/**
 * Maximum number of bytes that a channel buffers until a sandbox reads them. `ssh2` lets an honest client send 2 MiB while 2 MiB
 * are still buffered.
 */
const mostOfChannel = 4 * 1024 * 1024 + 64 * 1024
const mostOfConnection = 16 * 1024 * 1024
const mostOfAll = 256 * 1024 * 1024
/** Smallest packet size that a client must accept. RFC 4254 has no minimum, and with size 0 a write would never end. */
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
      // `ssh2` sends its buffered bytes only after the event `handshake`. So check in the next turn of the event loop how many
      // bytes still wait.
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
   * Begins to count the client's bytes that wait in a new channel for the sandbox. If the client accepts only small packets, cuts
   * the connection and returns false.
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
   * Call this after reading from a channel. If the channels held too many bytes, the gateway may now read from the client again.
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
