// A language server is a command of the agent whose input stays open. The server ends with its connection, and so with the sandbox
// or the gate. A server that breaks a limit is ended, and its open calls get 4xx.
import { Budget } from '#src/kit/budget.ts'
import { Problem } from '#src/problems.ts'
import { type CommandSpec, type RunningCommand, StartFailed } from '../agent/agent.ts'
import type { ToolboxSandbox } from '../sandbox.ts'
import { BadServer, encodeMessage, type Message, MessageReader } from './framing.ts'

export type Bounds = {
  answerMs: number
  /** Maximum number of bytes that a server may write between two calls of the API. A server that writes more is ended. */
  outputBytes: number
  /** Maximum number of requests to one server that wait for an answer. */
  mostWaiting: number
  /** Maximum number of messages that a server may send between two calls of the API. */
  mostMessages: number
  /** Maximum number of bytes that wait until the server reads them. */
  unsentBytes: number
}

export const bounds: Bounds = {
  answerMs: 30_000,
  outputBytes: 16 * 1024 * 1024,
  mostWaiting: 32,
  mostMessages: 5000,
  unsentBytes: 8 * 1024 * 1024,
}

/**
 * Limit in bytes for all language servers together: incomplete messages of servers, and requests that servers have not
 * read yet.
 */
const held = new Budget({ all: 256 * 1024 * 1024, ofFree: 1 })

const complaintLength = 300
/** Maximum number of messages in a row that are handled before other work of the event loop runs. */
const inARow = 100
const methodNotFound = -32_601

type Waiting = {
  method: string
  resolve: (result: unknown) => void
  reject: (error: Problem) => void
  timer: NodeJS.Timeout
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value.slice(0, complaintLength) : '')

/** The Problem for the caller if the server has refused a request. */
const refusalOf = (error: unknown, method: string): Problem => {
  const { code, message } = (error ?? {}) as { code?: unknown; message?: unknown }
  if (code === methodNotFound) return new Problem('unprocessable', `This language server does not offer ${method}.`)
  return new Problem('unprocessable', `The language server refused ${method}: ${textOf(message)}`)
}

/** Answers a server's request to its client, the gate. The gate has no settings, and accepts each registered capability. */
const answerTo = ({ method, params }: Message): object => {
  if (method === 'workspace/configuration') {
    const { items } = (params ?? {}) as { items?: unknown }
    return { result: Array.isArray(items) ? items.map(() => null) : [] }
  }
  if (method === 'workspace/workspaceFolders') return { result: null }
  if (method === 'client/registerCapability' || method === 'client/unregisterCapability') return { result: null }
  if (method === 'window/workDoneProgress/create') return { result: null }
  return { error: { code: methodNotFound, message: 'not offered' } }
}

export class LanguageServer {
  readonly #command: RunningCommand
  readonly #owner: string
  readonly #bounds: Bounds
  readonly #reader = new MessageReader()
  readonly #waiting = new Map<number, Waiting>()
  readonly #ended = Promise.withResolvers<void>()
  #ending: Problem | undefined
  #held = 0
  #left: number
  #id = 0
  #messages = 0
  #complaint = ''

  private constructor(command: RunningCommand, owner: string, limits: Bounds) {
    this.#command = command
    this.#owner = owner
    this.#bounds = limits
    this.#left = limits.outputBytes
    this.#follow().catch((error: unknown) => this.#end(error))
  }

  /** Starts the program of a language server in the sandbox. Throws `StartFailed` if the program cannot be started. */
  static async run(
    { agent, assignment }: Pick<ToolboxSandbox, 'agent' | 'assignment'>,
    spec: Pick<CommandSpec, 'argv' | 'env' | 'cwd'>,
    limits = bounds,
  ): Promise<LanguageServer> {
    const command = await agent.exec({ ...spec, user: assignment.user, mergeOutput: false, keepInput: true })
    return new LanguageServer(command, assignment.organizationId, limits)
  }

  get hasEnded(): boolean {
    return this.#ending !== undefined
  }

  /** Resolves when the server has ended. */
  get ended(): Promise<void> {
    return this.#ended.promise
  }

  /**
   * Sends a request and returns its result. Throws a Problem: 408 if no answer comes in time, otherwise the reason of the
   * failure.
   */
  async request(method: string, params: object): Promise<unknown> {
    if (this.#ending !== undefined) throw this.#ending
    if (this.#waiting.size >= this.#bounds.mostWaiting) {
      throw new Problem('rate_limited', 'This language server has too many open requests.')
    }
    this.#id += 1
    const id = this.#id
    this.#renew()
    const { promise, resolve, reject } = Promise.withResolvers<unknown>()
    const timer = setTimeout(() => this.#giveUp(id), this.#bounds.answerMs)
    this.#waiting.set(id, { method, timer, resolve, reject })
    this.#send({ id, method, params })
    return await promise
  }

  notify(method: string, params: object): void {
    if (this.#ending !== undefined) throw this.#ending
    const data = encodeMessage({ method, params })
    if (data.length > this.#bounds.unsentBytes) {
      throw new Problem('unprocessable', 'The request is too large for a language server.')
    }
    this.#renew()
    this.#write(data)
    if (this.#ending !== undefined) throw this.#ending
  }

  /** Resets the count of output bytes and messages, which are limited per call. */
  #renew(): void {
    this.#left = this.#bounds.outputBytes
    this.#messages = 0
  }

  end(): void {
    this.#end(new BadServer('was stopped.'))
  }

  #giveUp(id: number): void {
    const waiting = this.#take(id)
    const late = `The language server did not answer ${waiting?.method} within ${this.#bounds.answerMs / 1000} s.`
    waiting?.reject(new Problem('timeout', late))
    if (this.#ending === undefined) this.#send({ method: '$/cancelRequest', params: { id } })
  }

  #take(id: number): Waiting | undefined {
    const waiting = this.#waiting.get(id)
    clearTimeout(waiting?.timer)
    this.#waiting.delete(id)
    return waiting
  }

  #send(message: object): void {
    this.#write(encodeMessage(message))
  }

  #write(data: Uint8Array): void {
    if (this.#command.unsentBytes + data.length > this.#bounds.unsentBytes) {
      this.#end(new BadServer('does not read its requests.'))
    } else {
      this.#command.write(data)
      this.#count()
    }
  }

  /** Updates how much of the organization's memory for messages (`held`) this server uses. If no memory is left, ends the server. */
  #count(): void {
    if (this.#ending !== undefined) return
    const now = this.#reader.heldBytes + this.#command.unsentBytes
    const isRoom = now <= this.#held || held.take(this.#owner, now - this.#held)
    if (now < this.#held) held.give(this.#owner, this.#held - now)
    if (isRoom) this.#held = now
    else this.#end(new BadServer('needs more memory for its messages than your organization has left.'))
  }

  async #follow(): Promise<void> {
    for await (const { stream, data } of this.#command) {
      if (this.#ending !== undefined) return
      this.#left -= data.length
      if (stream === 'stderr') this.#complaint = (this.#complaint + data.toString()).slice(-complaintLength)
      else {
        const messages = this.#reader.push(data)
        this.#messages += messages.length
        for (const message of messages) this.#hear(message)
        if (this.#messages > this.#bounds.mostMessages) throw new BadServer('sends too many messages for one call.')
        // Many small messages in a row must not block the event loop.
        if (messages.length > inARow) await new Promise(setImmediate)
      }
      this.#count()
      if (this.#left < 0) throw new BadServer(`writes more than ${this.#bounds.outputBytes} bytes for one call.`)
    }
    const { exitCode } = await this.#command.exit
    throw new BadServer(`ended with ${exitCode}. ${this.#complaint.trim()}`.trim())
  }

  #hear(message: Message): void {
    const { id, method, result, error } = message
    if (typeof method === 'string') {
      const isQuestion = typeof id === 'number' || (typeof id === 'string' && id.length <= complaintLength)
      if (isQuestion && this.#ending === undefined) this.#send({ id, ...answerTo(message) })
      return
    }
    const waiting = typeof id === 'number' ? this.#take(id) : undefined
    if (waiting === undefined) return
    if (error === undefined || error === null) waiting.resolve(result)
    else waiting.reject(refusalOf(error, waiting.method))
  }

  #end(cause: unknown): void {
    if (this.#ending !== undefined) return
    const sentence = cause instanceof BadServer ? cause.message : 'cannot be reached. Is the Sandbox started?'
    this.#ending = new Problem('unprocessable', `The language server ${sentence}`, { cause })
    for (const id of [...this.#waiting.keys()]) this.#take(id)?.reject(this.#ending)
    this.#command.close()
    held.give(this.#owner, this.#held)
    this.#held = 0
    this.#ended.resolve()
  }
}

/** Whether the program of a server is missing in the sandbox. */
export const isMissing = (error: unknown): boolean =>
  error instanceof StartFailed && error.stage === 'exec' && (error.errno === 'ENOENT' || error.errno === 'EACCES')
