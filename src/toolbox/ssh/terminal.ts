// A command in a terminal of its own, as a job of the agent. Background processes that it leaves continue after its end.
import { randomUUID } from 'node:crypto'
import { constants } from 'node:os'
import { Problem } from '#src/problems.ts'
import type { TerminalSize } from '#src/wire/ssh.ts'
import { AgentGone, type Jobs, type Output } from '../agent/agent.ts'
import type { ToolboxSandbox } from '../sandbox.ts'
import type { End, Running } from './running.ts'

const prefix = 'ssh.'
/** Maximum bytes of output stored for a slow client. Older output is lost, and the client gets a message about the loss. */
const ringBytes = 4 * 1024 * 1024
const livingMax = 128
/** Maximum number of ended terminals that are kept. Removing an ended terminal ends its background processes. */
const endedMax = 32

type Spec = { argv: string[]; env: Record<string, string>; user: string }

class Terminal implements Running {
  readonly #jobs: Jobs
  readonly #id: string
  readonly #gone = new AbortController()
  readonly #ended = Promise.withResolvers<End>()

  constructor(jobs: Jobs, id: string) {
    this.#jobs = jobs
    this.#id = id
    this.#ended.promise.catch(() => undefined)
  }

  get end(): Promise<End> {
    return this.#ended.promise
  }

  async *outputs(): AsyncGenerator<Output> {
    try {
      for await (const event of this.#jobs.attach(this.#id, 0, { signal: this.#gone.signal })) {
        if (event.type === 'output') yield { stream: 'stdout', data: event.data }
        else if (event.type === 'truncated') {
          const sentence = `\r\n[${event.lostBytes} bytes of output were lost: they came faster than they were read]\r\n`
          yield { stream: 'stdout', data: Buffer.from(sentence) }
        } else return this.#ended.resolve({ code: event.exitCode, signal: event.signal })
      }
      throw new AgentGone('the terminal was given up')
    } catch (error) {
      this.#ended.reject(error)
      throw error
    }
  }

  write(data: Buffer, onGone: () => void): void {
    // Input for a terminal that has ended is ignored: the client learns of the end with the output.
    this.#jobs.input(this.#id, data).then(onGone, onGone)
  }

  /** Does nothing. In a terminal, only a typed ^D could end the input, but some programs read ^D as an ordinary character. */
  endInput(): void {}

  signal(signal: number): void {
    this.#jobs.signal(this.#id, signal).catch(() => undefined)
  }

  resize({ cols, rows }: TerminalSize): void {
    this.#jobs.resize(this.#id, cols, rows).catch(() => undefined)
  }

  hangUp(): void {
    this.#gone.abort()
    this.signal(constants.signals.SIGHUP)
    // Send SIGCONT too: a stopped process reacts to SIGHUP only after it continues.
    this.signal(constants.signals.SIGCONT)
  }
}

/** Throws a 429 if `livingMax` terminals have not ended. Removes the oldest ended terminals beyond `endedMax`. */
const makeRoom = async (jobs: Jobs): Promise<void> => {
  const ours = (await jobs.list()).filter(({ id }) => id.startsWith(prefix))
  const ended = ours.filter(({ state }) => state === 'ended')
  if (ours.length - ended.length >= livingMax) {
    throw new Problem('rate_limited', `This sandbox has ${livingMax} SSH terminals; close one first.`)
  }
  const oldestFirst = ended.sort((one, other) => Number(one.endedAt) - Number(other.endedAt))
  for (const { id } of oldestFirst.slice(0, Math.max(0, ended.length - endedMax))) {
    await jobs.remove(id).catch(() => undefined)
  }
}

export const startTerminal = async (
  { agent: { jobs } }: ToolboxSandbox,
  spec: Spec,
  { cols, rows }: TerminalSize,
): Promise<Running> => {
  await makeRoom(jobs)
  const id = `${prefix}${randomUUID()}`
  await jobs.spawn({ ...spec, id, ringBytes, terminal: { cols, rows } })
  return new Terminal(jobs, id)
}
