// Passes the input of one client to a terminal. Input that the terminal does not accept must not fill the gate's memory, so reading
// from the client stops.
import type { WebSocket } from 'ws'
import { bytesOf, closeWith } from '#src/http/socket.ts'
import { Budget } from '#src/kit/budget.ts'
import { isRefused, type Jobs } from '../agent/agent.ts'

/** Maximum buffered input of a client, in bytes. Above this size, the socket is paused. */
const aheadBytes = 1024 * 1024
/** Memory in bytes that a frame takes besides its contents. It matters for many frames of one byte. */
const frameBytes = 256
/**
 * Limits of buffered input, in bytes. `sure`: what each sandbox always gets. `each`: the maximum of a sandbox. A client is paused
 * above `aheadBytes`, but only after a whole frame of up to 4 MiB, so `each` must be larger.
 */
const typed = new Budget({ each: 16 * 1024 * 1024, all: 256 * 1024 * 1024, sure: 64 * 1024 })

const tooMuch = 'Too much input is waiting for terminals.'
const lost = 'Some of the input is lost, because the terminal did not read it.'

/** Whether the error means that the terminal has ended. The client is told of the end by connect.ts. */
const hasEnded = (error: unknown): boolean => ['ENOENT', 'ESRCH', 'EPIPE'].some((errno) => isRefused(error, errno))

export class Typing {
  readonly #socket: WebSocket
  readonly #sandboxId: string
  readonly #typed: Budget
  #waiting: Buffer[] = []
  /** Size of the buffered input, including input that is being sent, in bytes. */
  #size = 0
  #send: ((data: Buffer) => Promise<void>) | undefined
  #isSending = false
  /** True after the client has ended, or some of its input was refused or lost: then all further input is ignored. */
  #isOver = false

  /** Listens for input immediately, before it is known whether the terminal exists. */
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

  /** Ends the input. If the terminal is not known yet (`#send` is undefined), drops the buffered input. */
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
        // The terminal did not accept `data` within a minute. Some of `data` may be lost, so close the client's connection.
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

  /** Drops all further input, because a part of the input was lost, and what follows could now have another meaning. */
  #lose(): void {
    const bytes = this.#waiting.reduce((sum, { length }) => sum + length + frameBytes, 0)
    this.#waiting = []
    this.#forget(bytes)
    this.#refuse(lost)
  }

  /** Closes the socket. Input that was accepted before is still sent to the terminal. */
  #refuse(error: string): void {
    this.#isOver = true
    closeWith(this.#socket, 1013, JSON.stringify({ error }))
  }
}
