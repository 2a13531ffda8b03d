// Handles Ctrl-C and other signals. Before the program ends, it can undo what it began: `alcove run`, for example, deletes its
// sandbox.
import { setMaxListeners } from 'node:events'
import { constants } from 'node:os'
import { exitCodes } from './failure.ts'

/** Thrown when work stops because the user has interrupted the program. */
export class Interrupted extends Error {
  readonly exitCode: number

  constructor(exitCode: number) {
    super('interrupted')
    this.exitCode = exitCode
  }
}

const heard = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
/** `SIGPIPE`: the output cannot be written any more. Node reports this by an error of the stream and not by a signal. */
type Heard = (typeof heard)[number] | 'SIGPIPE'

/** After this number of interruptions the program ends immediately, even if it still has something to undo. */
const patience = 3

/** The exit code for lost output. If nobody reads the output any more (EPIPE), it is the exit code after SIGPIPE. */
export const lostOutputCode = (error: NodeJS.ErrnoException): number =>
  error.code === 'EPIPE' ? 128 + constants.signals.SIGPIPE : exitCodes.localFile

/** Listens for signals such as SIGINT. The first one aborts the AbortSignal `signal`, and the third one ends the program. */
export class Interruption implements Disposable {
  readonly #abort = new AbortController()
  readonly #listeners = new Map<Heard, () => void>()
  #count = 0
  #exitCode: number | undefined
  /** Called with the name of each signal (such as SIGINT) that this program gets, after `this.signal` was aborted. */
  onSignal: (name: Heard) => void = () => {}

  constructor() {
    // Each connection of `alcove port` listens to this abort signal. Node 20 would warn about more than ten listeners.
    setMaxListeners(0, this.signal)
    for (const name of heard) {
      const listener = () => this.#hear(name)
      this.#listeners.set(name, listener)
      process.on(name, listener)
    }
    process.stdout.on('error', this.#onOutputError)
    process.stderr.on('error', this.#onOutputError)
  }

  get signal(): AbortSignal {
    return this.#abort.signal
  }

  /** Exit code of an interrupted program: 130 after Ctrl-C. Undefined if the program was not interrupted. */
  get exitCode(): number | undefined {
    return this.#exitCode
  }

  #hear(name: Heard, exitCode = 128 + constants.signals[name]): void {
    if (name === 'SIGPIPE' && this.#exitCode !== undefined) return
    this.#count += 1
    this.#exitCode ??= exitCode
    this.#abort.abort(new Interrupted(this.#exitCode))
    if (this.#count >= patience) process.exit(this.#exitCode)
    this.onSignal(name)
  }

  /** Called when output cannot be written any more, as in `alcove sandbox list | head -1` or on a full disk. */
  readonly #onOutputError = (error: Error): void => this.#hear('SIGPIPE', lostOutputCode(error));

  [Symbol.dispose](): void {
    for (const [name, listener] of this.#listeners) process.off(name, listener)
    process.stdout.off('error', this.#onOutputError)
    process.stderr.off('error', this.#onOutputError)
  }
}
