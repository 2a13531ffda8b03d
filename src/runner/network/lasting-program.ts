// Runs a helper of the runner in a process without privileges: the resolver, or the proxy for secrets. The process is started when
// a sandbox first needs it, and is started again if it ends.
import { type ChildProcess, spawn } from 'node:child_process'
import type { Logger } from '#src/kit/log.ts'

type Serving = { type: 'serving' }

type LastingProgramParts<To, From extends { type: string }> = {
  /** The name of the program in logs and errors, such as `the proxy for secrets`. */
  name: string
  command: () => readonly string[]
  env?: Record<string, string>
  /** Called before each start of the program. For example, the function adds the address on which the program will listen. */
  prepare: () => Promise<unknown>
  /** Returns the messages that each new process of the program gets first, such as the domain lists of all sandboxes. */
  begin: () => Iterable<To>
  /** Called when the process accepts connections. `LastingProgram.serve` waits for the returned promise. */
  onServing: (word: Extract<From, Serving>) => Promise<void>
  /** Called for every message of the process, except the message `serving`. */
  onWord: (word: Exclude<From, Serving>) => void
  log: Logger
}

const startsWithinMs = 30_000
const againAfterMs = 500

const isServing = <From extends { type: string }>(word: From): word is Extract<From, Serving> => word.type === 'serving'

export class LastingProgram<To extends object, From extends { type: string }> {
  readonly #parts: LastingProgramParts<To, From>
  #child: ChildProcess | undefined
  #serving: Promise<void> | undefined
  #again: NodeJS.Timeout | undefined
  #closed = false

  constructor(parts: LastingProgramParts<To, From>) {
    this.#parts = parts
  }

  /** Starts the program if it does not run. Resolves when the program serves sandboxes. */
  serve(): Promise<void> {
    clearTimeout(this.#again)
    this.#serving ??= this.#start()
    return this.#serving
  }

  /**
   * Sends a message to the process. If the process has just ended, the message is lost. The next process first gets the messages of
   * `begin`.
   */
  say(word: To): void {
    if (this.#child?.connected) this.#child.send(word, () => {})
  }

  async close(): Promise<void> {
    this.#closed = true
    clearTimeout(this.#again)
    const child = this.#child
    if (child === undefined) return
    const ended = new Promise((resolve) => child.once('exit', resolve))
    child.kill('SIGKILL')
    await ended
  }

  async #start(): Promise<void> {
    const { name, command, env = {}, prepare, begin, onServing, onWord, log } = this.#parts
    if (this.#closed) throw new Error(`${name} is closed`)
    await prepare()
    if (this.#closed) throw new Error(`${name} is closed`)
    const [program = '', ...args] = command()
    const child = spawn(program, args, { env, stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
    this.#child = child
    const { promise, resolve: serving, reject } = Promise.withResolvers<void>()
    const timer = setTimeout(() => child.kill('SIGKILL'), startsWithinMs)
    child.on('error', (error) => log.error({ err: error }, `${name} failed`))
    child.once('exit', (code, signal) => {
      clearTimeout(timer)
      this.#child = undefined
      this.#serving = undefined
      reject(new Error(`${name} ended`))
      if (this.#closed) return
      log.error({ code, signal }, `${name} ended: starting it again`)
      this.#again = setTimeout(() => void this.serve().catch(() => {}), againAfterMs).unref()
    })
    child.on('message', (word: From) => {
      if (!isServing(word)) return onWord(word as Exclude<From, Serving>)
      clearTimeout(timer)
      onServing(word).then(serving, reject)
    })
    for (const word of begin()) this.say(word)
    return promise
  }
}
