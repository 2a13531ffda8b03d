// Passes bytes, signals and terminal sizes between the SSH gateway's WebSocket and a command in a sandbox.
import { constants } from 'node:os'
import { type Static, Type } from 'typebox'
import { Compile } from 'typebox/compile'
import type { RawData, WebSocket } from 'ws'
import { bytesOf, closeWith, sendWhole } from '#src/http/socket.ts'
import { Budget } from '#src/kit/budget.ts'
import { Problem } from '#src/problems.ts'
import {
  type CommandStart,
  type FromCommand,
  inputWindowBytes,
  mostCommandBytes,
  mostVariables,
  streamNumbers,
  variableBytes,
} from '#src/wire/ssh.ts'
import { asTold } from '../refusals.ts'
import type { ToolboxSandbox } from '../sandbox.ts'
import type { Running } from './running.ts'
import { startRequested } from './start.ts'

const exactly = { additionalProperties: false }
const noNul = '^[^\\u0000]*$'
const Side = Type.Integer({ minimum: 1, maximum: 1000 })
const Size = { cols: Side, rows: Side }

const Start = Type.Object(
  {
    type: Type.Literal('start'),
    run: Type.Union([
      Type.Object({ kind: Type.Literal('shell') }, exactly),
      Type.Object(
        { kind: Type.Literal('exec'), command: Type.String({ maxLength: mostCommandBytes, pattern: noNul }) },
        exactly,
      ),
      Type.Object({ kind: Type.Literal('sftp') }, exactly),
    ]),
    env: Type.Record(Type.String(), Type.String({ maxLength: variableBytes, pattern: noNul }), {
      maxProperties: mostVariables,
    }),
    terminal: Type.Optional(
      Type.Object({ ...Size, term: Type.String({ pattern: '^[A-Za-z0-9._+-]{1,64}$' }) }, exactly),
    ),
  },
  exactly,
)
const Told = Type.Union([
  Type.Object({ type: Type.Literal('eof') }, exactly),
  Type.Object({ type: Type.Literal('signal'), signal: Type.String({ maxLength: 16 }) }, exactly),
  Type.Object({ type: Type.Literal('resize'), ...Size }, exactly),
])
const isStart = Compile(Start)
const isTold = Compile(Told)

/** Maximum time in ms from the opening of the WebSocket until the SSH gateway's message `start`. */
const startMs = 10_000
/** Estimated memory in bytes that a waiting message takes in addition to its content. */
const messageBytes = 256
/**
 * Limits of input that commands have not read, in bytes: per sandbox, in total, and the part of the total that each sandbox always
 * gets.
 */
const held = new Budget({ each: 32 * 1024 * 1024, all: 256 * 1024 * 1024, sure: inputWindowBytes })

const namesOfSignals = new Map(Object.entries(constants.signals).map(([name, number]) => [number, name.slice(3)]))

const parsed = (data: RawData): unknown => {
  try {
    return JSON.parse(bytesOf(data).toString())
  } catch {
    return undefined
  }
}

class Conversation {
  readonly #socket: WebSocket
  readonly #sandbox: ToolboxSandbox
  readonly #started = Promise.withResolvers<CommandStart>()
  #running: Running | undefined
  #isStarted = false
  /** Number of input bytes that the command has not read. More than `inputWindowBytes` is an error of the SSH gateway. */
  #unacknowledged = 0

  constructor(socket: WebSocket, sandbox: ToolboxSandbox) {
    this.#socket = socket
    this.#sandbox = sandbox
    this.#started.promise.catch(() => undefined)
    socket.on('message', (data, isBinary) => {
      if (isBinary) this.#takeInput(bytesOf(data))
      else this.#hear(parsed(data))
    })
    socket.once('close', () => this.#started.reject(new Problem('gone')))
  }

  #tell(message: FromCommand): Promise<void> {
    return sendWhole(this.#socket, JSON.stringify(message))
  }

  #refuse(reason: string): void {
    closeWith(this.#socket, 1008, reason)
  }

  #takeInput(data: Buffer): void {
    if (data.length === 0) return
    const size = data.length + messageBytes
    const running = this.#running
    if (running === undefined) return void this.#refuse('input before the start')
    this.#unacknowledged += data.length
    if (this.#unacknowledged > inputWindowBytes) return void this.#refuse('more input than the window allows')
    if (!held.take(this.#sandbox.id, size)) return void this.#refuse('too much input waits')
    running.write(data, () => {
      held.give(this.#sandbox.id, size)
      this.#unacknowledged -= data.length
      void this.#tell({ type: 'credit', bytes: data.length })
    })
  }

  #hear(told: unknown): void {
    if (!this.#isStarted) {
      if (!isStart.Check(told)) return void this.#refuse('the first message is no start')
      this.#isStarted = true
      return void this.#started.resolve(told as Static<typeof Start> as CommandStart)
    }
    if (!isTold.Check(told)) return void this.#refuse('an unknown message')
    const running = this.#running
    if (running === undefined) return
    if (told.type === 'eof') running.endInput()
    else if (told.type === 'resize') running.resize(told)
    else {
      const signal = (constants.signals as Record<string, number>)[`SIG${told.signal}`]
      if (signal !== undefined) running.signal(signal)
    }
  }

  async serve(): Promise<void> {
    const late = setTimeout(() => this.#refuse('no start came'), startMs)
    const start = await this.#started.promise.finally(() => clearTimeout(late))
    const running = await startRequested(this.#sandbox, start)
    this.#running = running
    const onClose = () => running.hangUp()
    if (this.#socket.readyState !== this.#socket.OPEN) return onClose()
    this.#socket.once('close', onClose)
    await this.#tell({ type: 'started' })
    for await (const { stream, data } of running.outputs()) {
      // After a hang-up, the loop reads the remaining output and drops it. Leaving the loop would kill the command.
      await sendWhole(this.#socket, Buffer.concat([Buffer.of(streamNumbers[stream]), data]))
    }
    const { code, signal } = await running.end
    this.#socket.off('close', onClose)
    const name = signal === null ? undefined : namesOfSignals.get(signal)
    await this.#tell({ type: 'exit', code, ...(name === undefined ? {} : { signal: name }) })
    closeWith(this.#socket, 1000, '')
  }

  async fail(error: unknown): Promise<void> {
    await this.#tell({ type: 'failed', message: asTold(error).message })
    closeWith(this.#socket, 1011, '')
  }
}

/**
 * Runs the command of one SSH session. Sends no pings, because the SSH gateway would not answer while the user's SSH client reads
 * no output. The client may do so for an hour, and the command must wait.
 */
export const serveCommand = async (socket: WebSocket, sandbox: ToolboxSandbox): Promise<void> => {
  const conversation = new Conversation(socket, sandbox)
  await conversation.serve().catch((error) => conversation.fail(error))
}
