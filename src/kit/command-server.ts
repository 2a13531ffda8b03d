// Lets a small helper process (native/serve.c) start programs. Starting a program copies the process that starts it. The copying
// blocks a large process for milliseconds.
import { type ChildProcessByStdio, spawn } from 'node:child_process'
import type { Socket } from 'node:net'
import type { Readable, Writable } from 'node:stream'

export type Question = {
  argv: readonly string[]
  /**
   * What `argv` contains. `steps`: actions such as mounts, which the helper process does itself. `program`: the path of
   * a program and its arguments.
   */
  are?: 'steps' | 'program'
  /** True if the command moves a process between cgroups. */
  movesProcess?: boolean
  input?: string
  timeoutMs: number
}

type Ending = { exitCode: number | null; signal: number | null; stdout: string; stderr: string }

type Server = ChildProcessByStdio<Writable, Readable, null>
type PendingCommand = PromiseWithResolvers<Ending>

const headBytes = 16
const flagsOf = ({ are, movesProcess }: Question) => (are === 'steps' ? 1 : 0) | (movesProcess ? 2 : 0)
const movesSoon = 4

const encode = (id: number, question: Question, flags = flagsOf(question)): Buffer => {
  const { argv, input = '', timeoutMs } = question
  if (argv.some((word) => word.includes('\0'))) throw new TypeError('an argument holds a NUL')
  const body = Buffer.from(`${argv.join('\0')}\0${input}`)
  const head = Buffer.alloc(20)
  const seconds = Math.ceil(timeoutMs / 1000)
  for (const [index, value] of [headBytes + body.length, id, flags, seconds, argv.length].entries())
    head.writeUInt32LE(value, index * 4)
  return Buffer.concat([head, body])
}

export class CommandServer {
  readonly #argv: readonly [string, ...string[]]
  readonly #env: Record<string, string>
  readonly #waiting = new Map<number, PendingCommand>()
  #child: Server | undefined
  #unread: Buffer = Buffer.alloc(0)
  #last = 0

  constructor(argv: readonly [string, ...string[]], env: Record<string, string>) {
    this.#argv = argv
    this.#env = env
  }

  /**
   * Runs a command in the helper process (native/serve.c), and returns how it ended. Rejects if the helper process ends
   * first. It is then unknown whether the command has run.
   */
  run(question: Question): Promise<Ending> {
    const id = ++this.#last % 2 ** 32
    const bytes = encode(id, question)
    const child = this.#child ?? this.#start()
    const waiting = Promise.withResolvers<Ending>()
    this.#waiting.set(id, waiting)
    this.#keepAlive(child)
    child.stdin.write(bytes)
    return waiting.promise
  }

  /**
   * Tells the helper process (native/serve.c) to prepare for a command that moves a process between cgroups. The command then
   * takes less time.
   */
  expectMove() {
    const child = this.#child ?? this.#start()
    child.stdin.write(encode(0, { argv: [], timeoutMs: 0 }, movesSoon))
    this.#keepAlive(child)
  }

  /**
   * Ends the helper process (native/serve.c). Programs that it has started run to their end. Unfinished steps (such as
   * mounts) are killed.
   */
  close() {
    this.#child?.stdin.end()
  }

  #start() {
    const [program, ...args] = this.#argv
    const child = spawn(program, args, { env: this.#env, stdio: ['pipe', 'pipe', 'inherit'] })
    this.#child = child
    const gone = (error: Error) => {
      if (this.#child !== child) return
      this.#child = undefined
      this.#unread = Buffer.alloc(0)
      for (const { reject } of this.#waiting.values()) reject(error)
      this.#waiting.clear()
    }
    child.once('error', gone)
    child.once('close', () => gone(new Error(`${program} has ended.`)))
    child.stdin.on('error', () => {})
    child.stdout.on('data', (chunk: Buffer) => this.#read(chunk, child))
    return child
  }

  #read(chunk: Buffer, child: Server) {
    let rest = this.#unread.length === 0 ? chunk : Buffer.concat([this.#unread, chunk])
    while (rest.length >= 4 && rest.length >= 4 + rest.readUInt32LE(0)) {
      const end = 4 + rest.readUInt32LE(0)
      this.#hear(rest.subarray(4, end))
      rest = rest.subarray(end)
    }
    this.#unread = rest
    this.#keepAlive(child)
  }

  #hear(answer: Buffer) {
    const id = answer.readUInt32LE(0)
    const ending = answer.readInt32LE(4)
    const complaintsAt = 12 + answer.readUInt32LE(8)
    this.#waiting.get(id)?.resolve({
      exitCode: ending < 0 ? null : ending,
      signal: ending < 0 ? -ending : null,
      stdout: answer.toString('utf8', 12, complaintsAt),
      stderr: answer.toString('utf8', complaintsAt),
    })
    this.#waiting.delete(id)
  }

  /**
   * While a command waits for the helper's reply, the helper process keeps this Node process running. At other times it
   * does not.
   */
  #keepAlive(child: Server) {
    const verb = this.#waiting.size > 0 ? 'ref' : 'unref'
    child[verb]()
    for (const stream of [child.stdin, child.stdout]) (stream as unknown as Socket)[verb]()
  }
}
