// A program that `up` starts again whenever it ends, until `up` stops it.
import { setTimeout as pause } from 'node:timers/promises'
import { identityOf, type ProcessIdentity } from '#src/kit/process-identity.ts'
import type { ProgramState } from './state-file.ts'

/** A single run of a program, from its start to its end. */
export type Running = {
  pid: number
  /** Resolves when the program reports that it serves. If the program ends before such a report, this promise never settles. */
  ready: Promise<void>
  /** Resolves with the reason when the program has ended. Never rejects. */
  ended: Promise<string>
  /** Asks the program to end. */
  stop: () => void
}

/** The delay before a restart: `firstMs` at first, then twice as long each time, but at most `maxMs`. */
type Backoff = { firstMs: number; maxMs: number }

export const patience: Backoff = { firstMs: 100, maxMs: 5000 }

/** A factor that `delayAfter` uses: a program that has served ten times as long as the delay before its start counts as healthy. */
const isWellAfter = 10

/**
 * Returns the delay in ms before the next start. `beforeMs`: the delay before the last start, or 0. `servedMs`: how long the
 * program served after that start.
 */
export const delayAfter = (beforeMs: number, servedMs: number, { firstMs, maxMs }: Backoff): number =>
  servedMs >= beforeMs * isWellAfter ? firstMs : Math.min(beforeMs * 2, maxMs)

export type Program = {
  name: string
  /**
   * Starts the program once. `onRefused` is called when control refuses the key of the program, and when control accepts the key
   * again.
   */
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

  /** Asks the program to end, and kills it if it still runs after `graceMs`. Resolves when the program has ended. */
  async stop(graceMs: number): Promise<void> {
    this.#stopping.abort()
    this.#running?.stop()
    const kill = setTimeout(() => this.#kill(), graceMs)
    // Wait at most `graceMs` plus 500 ms. The loop may not end, because a start that still waits has no process to kill.
    await Promise.race([this.#loop, pause(graceMs + 500, undefined, { ref: false })])
    clearTimeout(kill)
  }

  #kill() {
    try {
      if (this.#running) process.kill(this.#running.pid, 'SIGKILL')
    } catch {
      // The process ended just before SIGKILL could be sent, which is no error.
    }
  }

  #become(state: ProgramState['state']) {
    this.#state = state
    this.#since = new Date()
    try {
      this.#onChange(this)
    } catch (error) {
      // If the function `#onChange` has thrown, go on, because the program must still be restarted, or stopped.
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

  /** Starts the program and waits for its end. Returns for how many milliseconds the program has served. */
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
