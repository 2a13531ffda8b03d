// A command that the agent kills when the command's connection to the gate or runner closes.
import { AgentGone, AgentRefused, Connection } from './connection.ts'
import { BadFrame, FieldReader, FieldWriter, type Frame, inputWindowBytes, kinds } from './frames.ts'
import { Handoff } from './handoff.ts'

export type CommandSpec = {
  /** Program and arguments. The program is looked up in the PATH of the environment. */
  argv: readonly string[]
  /** Variables that override the agent's HOME, USER, LOGNAME, SHELL and PATH. The agent sets PWD to the start directory. */
  env: Record<string, string>
  /** Start directory: absolute, or relative to the user's home. Default: the home. */
  cwd?: string
  /** User of the command: a name or a numeric uid, looked up inside the sandbox. */
  user: string
  /** Bytes for the standard input, which is then closed. Default: an empty standard input. */
  stdin?: Uint8Array
  /** Leaves the standard input open, so that `write` can add bytes. */
  keepInput?: boolean
  /** Uses one pipe for standard output and standard error, so that their order is kept. All output is then `stdout`. */
  mergeOutput: boolean
}
export type Output = { stream: 'stdout' | 'stderr'; data: Buffer }
/** The end of a command. After a death by signal N, `exitCode` is 128 + N. */
export type Exit = { exitCode: number; signal: number | null }

/** Thrown if the command could not be started; `stage` says what failed. */
export class StartFailed extends Error {
  override name = 'StartFailed'
  readonly stage: 'user' | 'cwd' | 'exec'
  readonly errno: string

  constructor(stage: 'user' | 'cwd' | 'exec', errno: string) {
    super(`the command could not be started (${stage}: ${errno})`)
    this.stage = stage
    this.errno = errno
  }
}

/**
 * The output of a command, for one reader only. Unread output blocks the command. If the reader leaves its loop early, the command
 * is killed.
 */
export interface RunningCommand extends AsyncIterable<Output> {
  readonly pid: number
  /** Resolves after all output has been read. Rejects with `AgentGone` if the sandbox ends first, or after `close`. */
  readonly exit: Promise<Exit>
  /** Settles when the memory of the input may be freed: all bytes were sent, or the connection was closed. */
  readonly inputGone: Promise<void>
  /** Number of input bytes that are not sent to the agent yet. The caller must limit this number. */
  readonly unsentBytes: number
  /**
   * Adds bytes to an input that `keepInput` leaves open. If the command has ended, the bytes are dropped. `onGone` is called when
   * the memory of `data` may be reused.
   */
  write(data: Uint8Array, onGone?: () => void): void
  /** Closes an input that `keepInput` leaves open, after all bytes of earlier calls of `write` were sent. */
  endInput(): void
  /** Sends a signal to the whole process group. */
  kill(signal: number): void
  /** Closes the connection. The agent then kills the process group if the command has not ended. */
  close(): void
}

const outputsAhead = 4
const inputChunkBytes = 64 * 1024

export const writeProgram = (
  fields: FieldWriter,
  spec: Pick<CommandSpec, 'argv' | 'env' | 'cwd' | 'user'>,
): FieldWriter =>
  fields
    .string(spec.user)
    .string(spec.cwd ?? '')
    .strings(spec.argv)
    .strings(Object.entries(spec.env).map(([name, value]) => `${name}=${value}`))

/** Turns the agent's refusal to set the user, enter the directory or run the program into `StartFailed`. */
export const asStartFailed = (error: unknown): unknown =>
  error instanceof AgentRefused && (error.stage === 'user' || error.stage === 'cwd' || error.stage === 'exec')
    ? new StartFailed(error.stage, error.errno)
    : error

export const readExit = (payload: Buffer): Exit => {
  const fields = new FieldReader(payload)
  const how = fields.u8()
  const value = fields.u32()
  fields.end()
  if (how > 1 || value > 255) throw new BadFrame('an exit that does not exist')
  return how === 1 ? { exitCode: 128 + value, signal: value } : { exitCode: value, signal: null }
}

export const startCommand = async (
  socketPath: string,
  spec: CommandSpec,
  signal?: AbortSignal,
): Promise<RunningCommand> => {
  const fields = new FieldWriter().u8((spec.mergeOutput ? 1 : 0) | (spec.stdin || spec.keepInput ? 2 : 0))
  const body = writeProgram(fields, spec).done()
  try {
    const [connection, answer] = await Connection.request(socketPath, kinds.exec, body, signal)
    const pid = answer.u32()
    answer.end()
    return new Command(connection, pid, spec)
  } catch (error) {
    throw asStartFailed(error)
  }
}

class Command implements RunningCommand {
  readonly pid: number
  readonly exit: Promise<Exit>
  readonly #connection: Connection
  readonly #outputs = new Handoff<Output>(outputsAhead, () => this.close())
  readonly #told = Promise.withResolvers<Exit>()
  readonly #inputGone = Promise.withResolvers<void>()
  #keepsInput: boolean
  #unsent: Uint8Array | undefined
  #onUnsentGone: (() => void) | undefined
  /** Pieces of input that were passed to `write` and are not sent yet. */
  readonly #queue: { data: Uint8Array; onGone: (() => void) | undefined }[] = []
  #queuedBytes = 0
  #credit = inputWindowBytes

  constructor(connection: Connection, pid: number, { stdin, keepInput = false }: CommandSpec) {
    this.#connection = connection
    this.pid = pid
    this.#keepsInput = keepInput
    this.#unsent = stdin ?? (keepInput ? Buffer.alloc(0) : undefined)
    if (this.#unsent === undefined) this.#letInputGo()
    this.exit = this.#told.promise
    // A caller that reads only the output may ignore `exit`. This handler prevents an unhandled rejection.
    this.exit.catch(() => {})
    this.#feed()
    this.#follow().catch((error: unknown) => this.#fail(error))
  }

  [Symbol.asyncIterator](): AsyncIterator<Output> {
    return this.#outputs
  }

  get inputGone(): Promise<void> {
    return this.#inputGone.promise
  }

  get unsentBytes(): number {
    return (this.#unsent?.length ?? 0) + this.#queuedBytes
  }

  write(data: Uint8Array, onGone?: () => void): void {
    if (this.#unsent === undefined) return void onGone?.()
    this.#queue.push({ data, onGone })
    this.#queuedBytes += data.length
    this.#feed()
  }

  endInput(): void {
    this.#keepsInput = false
    this.#feed()
  }

  kill(signal: number): void {
    this.#connection.send(kinds.kill, Buffer.of(signal))
  }

  close(): void {
    this.#connection.abort()
    this.#letInputGo()
    this.#outputs.end()
    this.#told.reject(new AgentGone('the command was given up'))
  }

  #fail(error: unknown): void {
    this.#connection.abort()
    this.#letInputGo()
    this.#told.reject(error)
    this.#outputs.end(error)
  }

  #letInputGo(): void {
    this.#unsent = undefined
    this.#queuedBytes = 0
    this.#tellGone()
    for (const { onGone } of this.#queue.splice(0)) onGone?.()
    this.#inputGone.resolve()
  }

  #tellGone(): void {
    const onGone = this.#onUnsentGone
    this.#onUnsentGone = undefined
    onGone?.()
  }

  #hasUnsent(): boolean {
    if (this.#unsent?.length === 0 && this.#queue.length > 0) {
      const { data, onGone } = this.#queue.shift()!
      this.#unsent = data
      this.#onUnsentGone = onGone
      this.#queuedBytes -= data.length
    }
    return this.#unsent !== undefined && this.#unsent.length > 0
  }

  /** Sends only as many bytes of input as the agent's credit allows, so that no input accumulates in the socket. */
  #feed(): void {
    while (this.#hasUnsent() && this.#unsent !== undefined && this.#credit > 0) {
      const chunk = this.#unsent.subarray(0, Math.min(inputChunkBytes, this.#credit))
      this.#connection.send(kinds.stdin, chunk)
      this.#credit -= chunk.length
      this.#unsent = this.#unsent.subarray(chunk.length)
      if (this.#unsent.length === 0) this.#tellGone()
    }
    if (this.#unsent?.length === 0 && !this.#keepsInput) {
      this.#connection.send(kinds.stdinEnd)
      this.#letInputGo()
    }
  }

  async #follow(): Promise<void> {
    for (;;) {
      const frame = await this.#connection.next()
      if (frame.kind === kinds.exit) {
        this.#told.resolve(readExit(frame.payload))
        this.#letInputGo()
        this.#outputs.end()
        this.#connection.close()
        return
      }
      await this.#take(frame)
    }
  }

  async #take({ kind, payload }: Frame): Promise<void> {
    if (kind === kinds.stdout) await this.#outputs.give({ stream: 'stdout', data: payload })
    else if (kind === kinds.stderr) await this.#outputs.give({ stream: 'stderr', data: payload })
    else if (kind === kinds.credit) {
      const credit = new FieldReader(payload)
      const more = credit.u32()
      credit.end()
      if (more === 0) throw new BadFrame('a credit of nothing')
      this.#credit += more
      if (this.#credit > inputWindowBytes) throw new BadFrame('more credit than was used')
      this.#feed()
    } else throw new BadFrame(`kind ${kind} from a running command`)
  }
}
