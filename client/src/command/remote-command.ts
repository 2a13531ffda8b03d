// Runs a command in a sandbox. The command's input and two outputs are connected to streams of this program.
//
// The protocol is that of the SSH gateway, at `{toolbox}/ssh/command`. The first message starts the command; binary messages
// contain input or output. A message with output begins with the number of the stream. The client may send `windowBytes` bytes of
// input, and more after each `credit` message.
import { constants } from 'node:os'
import type { Readable } from 'node:stream'
import type { WebSocket } from 'ws'
import type { Api } from '../api.ts'
import { cleanLines } from '../clean.ts'
import { exitCodes, Failure } from '../failure.ts'
import { write } from '../print/print.ts'
import { type Sandbox, toolboxOf } from '../sandboxes/sandbox.ts'
import { keepAlive, openSocket } from './open-socket.ts'
import { makeToken } from './ssh-token.ts'

const windowBytes = 256 * 1024
const pieceBytes = 64 * 1024

export type CommandParts = {
  argv: readonly string[]
  env?: Record<string, string>
  /** The input of the command. If undefined, the input is empty. */
  input?: Readable | undefined
  stdout: NodeJS.WritableStream
  stderr: NodeJS.WritableStream
  /** Called when the command has started. `signal` sends the command a signal, such as `INT`. */
  onStart?: (signal: (name: string) => void) => void
}

type Told =
  | { type: 'started' }
  | { type: 'credit'; bytes: number }
  | { type: 'exit'; code: number; signal?: string }
  | { type: 'failed'; message: string }

/** Quotes a text, so that a POSIX shell reads it as exactly this one word. */
export const quoted = (word: string): string => `'${word.replaceAll("'", `'\\''`)}'`

const parsed = (data: Buffer): Told | undefined => {
  try {
    return JSON.parse(data.toString()) as Told
  } catch {
    return undefined
  }
}

/** After a signal, the exit code is 128 plus the number of the signal, as in a shell. */
const codeOf = ({ code, signal }: { code: number; signal?: string }): number => {
  const number = signal === undefined ? undefined : (constants.signals as Record<string, number>)[`SIG${signal}`]
  return number === undefined ? code : 128 + number
}

class Conversation {
  readonly #socket: WebSocket
  readonly #parts: CommandParts
  readonly #outputs: NodeJS.WritableStream[]
  #window = windowBytes
  #onCredit: () => void = () => {}
  #isOver = false
  #writing: Promise<void> = Promise.resolve()
  #waiting = 0

  constructor(socket: WebSocket, parts: CommandParts) {
    this.#socket = socket
    this.#parts = parts
    this.#outputs = [parts.stdout, parts.stderr]
  }

  #tell(message: object): void {
    if (this.#socket.readyState === this.#socket.OPEN) this.#socket.send(JSON.stringify(message))
  }

  /** Writes output in the order in which it arrives. Until it is written, no more messages are read from the server. */
  #show(data: Buffer): void {
    const stream = this.#outputs[(data[0] ?? 0) - 1]
    if (stream === undefined) return
    this.#waiting += 1
    this.#socket.pause()
    this.#writing = this.#writing
      .then(() => write(stream, data.subarray(1)))
      .finally(() => {
        this.#waiting -= 1
        if (this.#waiting === 0) this.#socket.resume()
      })
  }

  async #sendInput(): Promise<void> {
    for await (const chunk of this.#parts.input ?? []) {
      const data = chunk as Buffer
      for (let at = 0; at < data.length && !this.#isOver; ) {
        if (this.#window === 0) {
          await new Promise<void>((resolve) => {
            this.#onCredit = resolve
          })
          continue
        }
        const piece = data.subarray(at, at + Math.min(this.#window, pieceBytes))
        this.#window -= piece.length
        at += piece.length
        this.#socket.send(piece)
      }
      if (this.#isOver) return
    }
    this.#tell({ type: 'eof' })
  }

  /** Starts the command, waits until all its output is written, and returns its exit code. */
  async run(): Promise<number> {
    const { argv, env, onStart, input } = this.#parts
    keepAlive(this.#socket)
    const ended = new Promise<number>((resolve, reject) => {
      const lost = () =>
        new Failure(
          'The connection to the sandbox was lost. The server sends SIGHUP to the command.',
          exitCodes.unreachable,
        )
      this.#socket.on('message', (data: Buffer, isBinary) => {
        if (isBinary) return this.#show(data)
        const told = parsed(data)
        if (told?.type === 'started') {
          this.#sendInput().catch(reject)
          onStart?.((signal) => this.#tell({ type: 'signal', signal }))
        } else if (told?.type === 'credit' && Number.isSafeInteger(told.bytes) && told.bytes > 0) {
          this.#window += told.bytes
          this.#onCredit()
        } else if (told?.type === 'exit' && Number.isSafeInteger(told.code)) resolve(codeOf(told))
        else if (told?.type === 'failed') reject(new Failure(cleanLines(String(told.message)), exitCodes.refused))
      })
      this.#socket.once('close', () => reject(lost()))
    })
    this.#socket.resume()
    this.#tell({
      type: 'start',
      run: { kind: 'exec', command: argv.map(quoted).join(' ') },
      env: env ?? {},
    })
    try {
      const code = await ended
      await this.#writing
      return code
    } finally {
      this.#isOver = true
      this.#onCredit()
      input?.destroy()
      this.#socket.terminate()
    }
  }
}

/**
 * Runs a command in a sandbox, and returns its exit code. An interruption closes the connection; the command then gets
 * SIGHUP.
 */
export const runCommand = async (
  api: Api,
  sandbox: Sandbox,
  parts: CommandParts & { signal?: AbortSignal | undefined },
): Promise<number> => {
  const { signal } = parts
  const { token, revoke } = await makeToken(api, sandbox)
  try {
    const headers = { authorization: `Bearer ${token}` }
    const socket = await openSocket(`${toolboxOf(sandbox)}/ssh/command`, { headers, signal })
    const onAbort = () => socket.terminate()
    signal?.addEventListener('abort', onAbort, { once: true })
    try {
      return await new Conversation(socket, parts).run()
    } catch (error) {
      throw signal?.aborted ? signal.reason : error
    } finally {
      signal?.removeEventListener('abort', onAbort)
    }
  } finally {
    await revoke()
  }
}
