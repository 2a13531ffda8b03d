// Connects one terminal on the page to its PTY session, which runs on without a page. After a lost connection, connects again, with
// longer and longer waits, until the session has ended or no longer exists.
import { readControl } from './control-message.ts'
import { waitAfter } from './waits.ts'

export type LinkState =
  | { name: 'connecting' }
  | { name: 'connected' }
  /** The connection is lost. The next attempt to connect is at the time `retryAt`, in ms since 1970. */
  | { name: 'waiting'; reason: string; retryAt: number }
  /** The sandbox does not run, so no attempt to connect is made. */
  | { name: 'held' }
  | { name: 'ended'; exitCode: number | undefined; reason: string | undefined }
  | { name: 'gone' }

export type LinkSocket = Pick<WebSocket, 'send' | 'close' | 'readyState' | 'bufferedAmount'> & {
  onmessage: ((event: MessageEvent) => void) | null
  onclose: ((event: CloseEvent) => void) | null
}

export type LinkParts = {
  /** Opens a WebSocket to the PTY session, and makes the session if necessary. A failure throws an error for the user. */
  open: () => Promise<LinkSocket>
  /**
   * Asks the server why the connection failed. Returns `gone` if the PTY session no longer exists, otherwise an error
   * message for the user.
   */
  ask: () => Promise<'gone' | string>
  onState: (state: LinkState) => void
  /** Called when a connection begins. The terminal must be cleared, because the server sends all stored output again. */
  onBegin: () => void
  onOutput: (data: Uint8Array) => void
}

/** After a connection of at least this many ms, the wait before the next attempt is short again. */
const steadyMilliseconds = 10_000
/** Maximum number of typed bytes that may wait for the network. */
const longestUnsent = 4 * 1024 * 1024
const openState = 1

export class PtyLink {
  readonly #parts: LinkParts
  #state: LinkState = { name: 'connecting' }
  #socket: LinkSocket | undefined
  #timer: ReturnType<typeof setTimeout> | undefined
  #failures = 0
  #attempt = 0
  #isClosed = false

  constructor(parts: LinkParts) {
    this.#parts = parts
  }

  get state(): LinkState {
    return this.#state
  }

  /** Connects immediately. Does nothing if the terminal is connected already, or if the PTY session has ended. */
  connect(): void {
    if (this.#isClosed || this.#isOver() || this.#socket !== undefined) return
    clearTimeout(this.#timer)
    this.#attempt += 1
    void this.#open(this.#attempt)
  }

  /** Closes the connection, because the sandbox does not run. Makes no attempt to connect until `connect` is called. */
  hold(): void {
    if (this.#isClosed || this.#isOver()) return
    this.#drop()
    this.#become({ name: 'held' })
  }

  /** Sends typed text. Returns false if the terminal is not connected, or if too much typed text waits for the network. */
  send(data: string | Uint8Array<ArrayBuffer>): boolean {
    const socket = this.#socket
    if (this.#state.name !== 'connected' || socket?.readyState !== openState) return false
    if (socket.bufferedAmount + data.length > longestUnsent) return false
    socket.send(data)
    return true
  }

  close(): void {
    this.#isClosed = true
    this.#drop()
  }

  async #open(attempt: number): Promise<void> {
    this.#become({ name: 'connecting' })
    let socket: LinkSocket
    try {
      socket = await this.#parts.open()
    } catch (error) {
      if (attempt === this.#attempt) await this.#failed(attempt, (error as Error).message)
      return
    }
    if (attempt !== this.#attempt || this.#isClosed) {
      socket.close()
      return
    }
    this.#socket = socket
    let openedAt = 0
    socket.onmessage = ({ data }) => {
      if (attempt !== this.#attempt) return
      if (typeof data !== 'string') {
        this.#parts.onOutput(new Uint8Array(data as ArrayBuffer))
        return
      }
      const message = readControl(data)
      if (message?.status === 'connected') {
        openedAt = Date.now()
        this.#parts.onBegin()
        this.#become({ name: 'connected' })
      }
      if (message?.status === 'exited')
        this.#become({ name: 'ended', exitCode: message.exitCode, reason: message.reason })
    }
    socket.onclose = () => {
      if (attempt !== this.#attempt) return
      this.#socket = undefined
      if (openedAt > 0 && Date.now() - openedAt > steadyMilliseconds) this.#failures = 0
      if (!this.#isOver()) void this.#failed(attempt, 'The connection was lost.')
    }
  }

  /** Called after a failed attempt or a lost connection. Connects again after a wait, unless the PTY session no longer exists. */
  async #failed(attempt: number, otherwise: string): Promise<void> {
    this.#failures += 1
    this.#become({ name: 'connecting' })
    const answer = await this.#parts.ask().catch((error: unknown) => (error as Error).message || otherwise)
    if (attempt !== this.#attempt || this.#isClosed) return
    if (answer === 'gone') {
      this.#become({ name: 'gone' })
      return
    }
    const wait = waitAfter(this.#failures, Math.random())
    this.#become({ name: 'waiting', reason: answer || otherwise, retryAt: Date.now() + wait })
    this.#timer = setTimeout(() => this.connect(), wait)
  }

  #isOver(): boolean {
    return this.#state.name === 'ended' || this.#state.name === 'gone'
  }

  #drop(): void {
    clearTimeout(this.#timer)
    this.#attempt += 1
    const socket = this.#socket
    this.#socket = undefined
    socket?.close()
  }

  #become(state: LinkState): void {
    this.#state = state
    if (!this.#isClosed) this.#parts.onState(state)
  }
}
