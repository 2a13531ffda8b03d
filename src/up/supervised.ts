// A program that is restarted whenever it ends, until it is stopped.
import { setTimeout as pause } from 'node:timers/promises'
import { identityOf, type ProcessIdentity } from '#src/kit/process-identity.ts'
import type { ProgramState } from './state-file.ts'

/** A program that has been started. */
export type Running = {
  pid: number
  /** Resolves when the program serves. Never rejects. */
  ready: Promise<void>
  /** Resolves when the program has ended, with the reason. Never rejects. */
  ended: Promise<string>
  /** Asks the program to end. */
  stop: () => void
}

/** Delay before a restart. It doubles each time, up to `maxMs`. */
type Backoff = { firstMs: number; maxMs: number }

export const patience: Backoff = { firstMs: 100, maxMs: 5000 }

/** A program counts as healthy if it served at least this many times as long as the delay before its start. */
const isWellAfter = 10

/**
 * The next delay in ms. `beforeMs` is the last delay (0: none yet), `servedMs` the time that the program then served. A program
 * that fails as soon as it serves is restarted less and less often. A program that is killed repeatedly is down at most about a
 * tenth of the time.
 */
export const delayAfter = (beforeMs: number, servedMs: number, { firstMs, maxMs }: Backoff): number =>
  servedMs >= beforeMs * isWellAfter ? firstMs : Math.min(beforeMs * 2, maxMs)

export type Program = {
  name: string
  /** Starts the program. `onRefused` is called when control refuses the program's key, and when control accepts the key again. */
  start: (onRefused: (isRefused: boolean) => void) => Promise<Running>
}

export class Supervised {
  readonly name: string
  readonly #start: Program['start']
  readonly #onChange: (program: Supervised) => void
  readonly #backoff: Backoff
  readonly #stopping = new AbortController()
  #running: Running | undefined
  #identity: ProcessIdentity = { pid: 0, startTime: '' }
  #state: ProgramState['state'] = 'starting'
  #since = new Date()
  #restarts = 0
  #lastEnd: string | undefined
  #loop: Promise<void> | undefined
  /** Resolves when the program serves for the first time. */
  readonly firstReady: Promise<void>
  #wasReady: () => void = () => {}

  constructor(program: Program, onChange: (program: Supervised) => void, backoff: Backoff = patience) {
    this.name = program.name
    this.#start = program.start
    this.#onChange = onChange
    this.#backoff = backoff
    this.firstReady = new Promise((resolve) => {
      this.#wasReady = resolve
    })
  }

  get state(): ProgramState {
    const lastEnd = this.#lastEnd === undefined ? {} : { lastEnd: this.#lastEnd }
    const { pid, startTime } = this.#identity
    const since = this.#since.toISOString()
    return { name: this.name, pid, startTime, state: this.#state, since, restarts: this.#restarts, ...lastEnd }
  }

  begin(): void {
    this.#loop ??= this.#keepRunning()
  }

  /** Asks the program to end, kills it after `graceMs`, and waits until it has ended. */
  async stop(graceMs: number): Promise<void> {
    this.#stopping.abort()
    this.#running?.stop()
    const kill = setTimeout(() => this.#kill(), graceMs)
    // The timeout also covers a start that is still waiting, while no process runs yet.
    await Promise.race([this.#loop, pause(graceMs + 500, undefined, { ref: false })])
    clearTimeout(kill)
  }

  #kill() {
    try {
      if (this.#running) process.kill(this.#running.pid, 'SIGKILL')
    } catch {
      // An error here means that the process has just ended.
    }
  }

  #become(state: ProgramState['state']) {
    this.#state = state
    this.#since = new Date()
    try {
      this.#onChange(this)
    } catch (error) {
      // A failing listener must not stop the supervision of the program.
      console.error(error)
    }
  }

  async #keepRunning() {
    const { signal } = this.#stopping
    let delayMs = 0
    while (!signal.aborted) {
      delayMs = delayAfter(delayMs, await this.#runOnce(), this.#backoff)
      if (signal.aborted) return
      this.#become('waiting')
      await pause(delayMs, undefined, { signal }).catch(() => {})
      this.#restarts += 1
    }
  }

  /** Runs the program once. Returns how long it served, in milliseconds. */
  async #runOnce(): Promise<number> {
    let readyAt: number | undefined
    let isOver = false
    const onRefused = (isRefused: boolean) => {
      if (!isOver) this.#become(isRefused ? 'refused' : readyAt === undefined ? 'starting' : 'ready')
    }
    try {
      const running = await this.#start(onRefused)
      this.#running = running
      this.#identity = identityOf(running.pid)
      if (this.#stopping.signal.aborted) running.stop()
      this.#become('starting')
      running.ready.then(() => {
        if (this.#running !== running) return
        readyAt = Date.now()
        this.#become('ready')
        this.#wasReady()
      })
      this.#lastEnd = await running.ended
    } catch (error) {
      this.#lastEnd = (error as Error).message
    }
    isOver = true
    this.#running = undefined
    this.#identity = { pid: 0, startTime: '' }
    return readyAt === undefined ? 0 : Date.now() - readyAt
  }
}
