// A client of a terminal. Each client reads the stored output from the agent on its own. A slow client does not slow down other
// clients, a new client sees earlier output, and a restart of the gate loses no state.
import { constants } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import type { WebSocket } from 'ws'
import { closeWith, keepAlive, sendWhole } from '#src/http/socket.ts'
import { Budget } from '#src/kit/budget.ts'
import { giveBack } from '#src/kit/pour.ts'
import { Problem } from '#src/problems.ts'
import { lookBack } from '#src/toolbox/running/out-of-memory.ts'
import type { JobEvent } from '../agent/agent.ts'
import { asTold } from '../refusals.ts'
import type { ToolboxSandbox } from '../sandbox.ts'
import { tellExit } from './exit.ts'
import type { Pty } from './record.ts'
import { startMark } from './shell.ts'
import { exitControl } from './subprotocols.ts'
import { Typing } from './typing.ts'

/** Number of bytes of earlier output that a new client gets. */
const scrollbackBytes = 64 * 1024
/**
 * Interval in ms at which SIGCONT is sent to a shell with `lazyStart`, which stops itself until its first client connects. A
 * SIGCONT before the stop has no effect.
 */
const wakeMs = 20
/** Maximum number of clients of one terminal. Each client follows the output and buffers input on its own. */
const clientsMax = 32
/** Maximum time in ms between the kernel's kill of a process for lack of memory and the end of that process. */
const dyingMs = 2_000
const clients = new Budget({ each: clientsMax })

const tell = (socket: WebSocket, status: string, more: object = {}) =>
  sendWhole(socket, JSON.stringify({ type: 'control', status, ...more }))

/** Drops the bytes up to the first line break: they may begin inside a character or a color sequence. */
const fromLineStart = (data: Buffer): Buffer => data.subarray(data.indexOf('\n') + 1)

class Client {
  readonly #socket: WebSocket
  readonly #sandbox: ToolboxSandbox
  readonly #pty: Pty
  readonly #gone = new AbortController()
  #hasStarted: boolean

  constructor(socket: WebSocket, sandbox: ToolboxSandbox, pty: Pty) {
    this.#socket = socket
    this.#sandbox = sandbox
    this.#pty = pty
    this.#hasStarted = pty.isActive
    socket.once('close', () => this.#gone.abort())
    if (socket.readyState !== socket.OPEN) this.#gone.abort()
  }

  async serve(typing: Typing): Promise<void> {
    const { job, record } = this.#pty
    const begin = record.lazyStart ? startMark.length : 0
    const first = Math.max(begin, job.startOffset, job.endOffset - scrollbackBytes)
    // When its first client connects, a shell with `lazyStart` prints `startMark` before all other output. Clients do not get this
    // mark. `markLeft`: how many bytes of the mark the shell still has to print. The loop below skips these bytes.
    const from = Math.min(first, job.endOffset)
    let isCut = from > begin
    let markLeft = first - from
    const waking = this.#wake()
    if (this.#hasStarted) this.#takeInput(typing)
    try {
      const { signal } = this.#gone
      for await (const event of this.#sandbox.agent.jobs.attach(job.id, from, { signal })) {
        this.#takeInput(typing)
        if (event.type === 'exit') return await this.#end(event)
        if (event.type === 'truncated') {
          if (await this.#isTooSlow(event)) return
        } else {
          const data = event.data.subarray(markLeft)
          markLeft -= event.data.length - data.length
          await this.#show(isCut ? fromLineStart(data) : data)
          isCut = false
        }
      }
    } finally {
      this.#gone.abort()
      await waking
    }
  }

  /**
   * Passes the client's input to the terminal after the shell has started. Before the start, the terminal would echo the input like
   * output of the shell.
   */
  #takeInput(typing: Typing): void {
    this.#hasStarted = true
    typing.into(this.#sandbox.agent.jobs, this.#pty.job.id)
  }

  async #show(data: Buffer): Promise<void> {
    if (data.length === 0) return
    await sendWhole(this.#socket, data)
    giveBack(data)
  }

  async #end(exit: JobEvent & { type: 'exit' }): Promise<void> {
    const { message, closeCode, closeReason } = tellExit(exit, await this.#findShortage(exit))
    if (this.#socket.protocol === exitControl) await sendWhole(this.#socket, message)
    closeWith(this.#socket, closeCode, closeReason)
  }

  /**
   * Returns an explanation if the kernel killed the shell for lack of memory. A killed child of the shell needs no explanation,
   * because the shell prints a message.
   */
  async #findShortage({ signal }: JobEvent & { type: 'exit' }) {
    const endedAt = new Date()
    const createdAt = new Date(endedAt.getTime() - dyingMs)
    const ran = { createdAt, endedAt }
    return signal === null ? undefined : (await lookBack(this.#sandbox, [ran]))(ran)
  }

  /**
   * Returns true if output was lost because this client reads too slowly. False if it was lost because the disk was full, so that
   * the agent could not store it.
   */
  async #isTooSlow({ offset, lostBytes }: JobEvent & { type: 'truncated' }): Promise<boolean> {
    const now = (await this.#sandbox.agent.jobs.list()).find(({ id }) => id === this.#pty.job.id)
    if (now !== undefined && now.startOffset > offset) {
      closeWith(this.#socket, 1008, JSON.stringify({ error: 'This client reads too slowly.' }))
      return true
    }
    await this.#show(Buffer.from(`\r\n[${lostBytes} bytes of output were lost]\r\n`))
    return false
  }

  /** Wakes a shell with `lazyStart`: sends SIGCONT to it until its first output. */
  async #wake(): Promise<void> {
    const { signal } = this.#gone
    while (!this.#hasStarted && !signal.aborted) {
      await this.#sandbox.agent.jobs.signal(this.#pty.job.id, constants.signals.SIGCONT).catch(() => undefined)
      await delay(wakeMs, undefined, { signal }).catch(() => undefined)
    }
  }
}

/** Connects a client. `find` returns or creates the terminal. The client gets the error of `find`. */
export const connect = async (socket: WebSocket, sandbox: ToolboxSandbox, find: () => Promise<Pty>): Promise<void> => {
  // Listen for input before the first `await`, because a client may type immediately.
  const typing = new Typing(socket, sandbox.id)
  keepAlive(socket)
  try {
    const pty = await find()
    const key = JSON.stringify([sandbox.id, pty.job.id])
    if (!clients.take(key))
      throw new Problem('rate_limited', `This PTY session has ${clientsMax} clients, the most that it can have.`)
    try {
      await tell(socket, 'connected')
      await new Client(socket, sandbox, pty).serve(typing)
    } finally {
      clients.give(key)
    }
  } catch (error) {
    const { message } = asTold(error)
    await tell(socket, 'error', { error: message })
    closeWith(socket, 1011, JSON.stringify({ error: message }))
  } finally {
    typing.end()
  }
}
