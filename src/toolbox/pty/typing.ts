// What one client types, on its way to a terminal. A terminal that takes nothing stops its client, not our memory.
import type { WebSocket } from 'ws'
import { bytesOf } from '#src/http/socket.ts'
import type { Jobs } from '../agent/agent.ts'

/** More than this is not taken from the socket until some of it has gone. */
const aheadBytes = 1024 * 1024
/** What a frame takes besides what is in it; one of a single byte takes little else. */
const frameBytes = 256

export class Typing {
  readonly #socket: WebSocket
  #waiting: Buffer[] = []
  /** With what is being sent. */
  #size = 0
  #send: ((data: Buffer) => Promise<void>) | undefined
  #isSending = false

  /** Listens from now on, before it is known whether there is such a terminal. */
  constructor(socket: WebSocket) {
    this.#socket = socket
    socket.on('message', (data) => {
      const bytes = bytesOf(data)
      if (bytes.length === 0) return
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

  async #flow(): Promise<void> {
    if (this.#isSending || this.#send === undefined) return
    this.#isSending = true
    while (this.#waiting.length > 0) {
      const frames = this.#waiting.length
      const data = Buffer.concat(this.#waiting)
      this.#waiting = []
      // A shell that has ended, or a program that has not read for a minute: what was typed for it is dropped.
      await this.#send(data).catch(() => undefined)
      this.#size -= data.length + frames * frameBytes
      if (this.#size <= aheadBytes && this.#socket.isPaused) this.#socket.resume()
    }
    this.#isSending = false
  }
}
