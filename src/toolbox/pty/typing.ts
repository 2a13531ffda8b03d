// What one client types, on its way to a terminal. A terminal that takes nothing stops its client, not our memory.
import type { WebSocket } from 'ws'
import { bytesOf, closeWith } from '#src/http/socket.ts'
import { Bound } from '#src/kit/bound.ts'
import { isRefused, type Jobs } from '../agent/agent.ts'

/** More than this is not taken from the socket until some of it has gone. */
const aheadBytes = 1024 * 1024
/** What a frame takes besides what is in it; one of a single byte takes little else. */
const frameBytes = 256
/** Bytes that were typed ahead, in a sandbox and in all: a client is stopped one frame too late, and that may have 4 MiB. */
const typed = new Bound({ each: 16 * 1024 * 1024, all: 256 * 1024 * 1024, sure: 64 * 1024 })

const tooMuch = 'More is typed than terminals have taken.'
const lost = 'Some of what was typed is lost: the terminal has not taken it.'

/** Whether the terminal has ended; its client hears so elsewhere. */
const hasEnded = (error: unknown): boolean => ['ENOENT', 'ESRCH', 'EPIPE'].some((errno) => isRefused(error, errno))

export class Typing {
  readonly #socket: WebSocket
  readonly #sandboxId: string
  readonly #typed: Bound
  #waiting: Buffer[] = []
  /** With what is being sent. */
  #size = 0
  #send: ((data: Buffer) => Promise<void>) | undefined
  #isSending = false
  /** Nothing that comes now is meant for the terminal. */
  #isOver = false

  /** Listens from now on, before it is known whether there is such a terminal. */
  constructor(socket: WebSocket, sandboxId: string, bound = typed) {
    this.#socket = socket
    this.#sandboxId = sandboxId
    this.#typed = bound
    socket.on('message', (data) => {
      const bytes = bytesOf(data)
      if (bytes.length === 0 || this.#isOver) return
      if (!this.#typed.take(sandboxId, bytes.length + frameBytes)) return this.#refuse(tooMuch)
      this.#waiting.push(bytes)
      this.#size += bytes.length + frameBytes
      if (this.#size > aheadBytes) socket.pause()
      this.#flow()
    })
  }

  into(jobs: Jobs, jobId: string): void {
    this.#send ??= (data) => jobs.input(jobId, data)
    this.#flow()
  }

  /** No more will be typed. If no terminal was found by now, none will be. */
  end(): void {
    this.#isOver = true
    if (this.#send !== undefined) return
    this.#waiting = []
    this.#forget(this.#size)
  }

  async #flow(): Promise<void> {
    if (this.#isSending || this.#send === undefined) return
    this.#isSending = true
    while (this.#waiting.length > 0) {
      const frames = this.#waiting.length
      const data = Buffer.concat(this.#waiting)
      this.#waiting = []
      await this.#send(data).catch((error) => {
        // Nobody knows how much of a piece arrived that a program has not read for a minute.
        if (!hasEnded(error)) this.#lose()
      })
      this.#forget(data.length + frames * frameBytes)
      if (this.#size <= aheadBytes && this.#socket.isPaused) this.#socket.resume()
    }
    this.#isSending = false
  }

  #forget(bytes: number): void {
    this.#size -= bytes
    this.#typed.give(this.#sandboxId, bytes)
  }

  /** What came after a gap would mean something else. */
  #lose(): void {
    const bytes = this.#waiting.reduce((sum, { length }) => sum + length + frameBytes, 0)
    this.#waiting = []
    this.#forget(bytes)
    this.#refuse(lost)
  }

  /** What was typed before goes on its way. */
  #refuse(error: string): void {
    this.#isOver = true
    closeWith(this.#socket, 1013, JSON.stringify({ error }))
  }
}
