// Stores what one runner of this host has reported about its sandboxes, and sends requests to that runner
// (wire/gate-link.ts). If the runner disconnects, the last reports still count: the agents need no runner.
import { connect, type Socket } from 'node:net'
import { Compile } from 'typebox/compile'
import { Frames, frameOf, jsonFrameOf, sendFrame } from '#src/kit/length-frames.ts'
import type { Logger } from '#src/kit/log.ts'
import { Problem, type ProblemCode } from '#src/problems.ts'
import {
  answerBytes,
  type GateAnswer,
  type GateNews,
  GateNewsSchema,
  type GateRequest,
  requestBytes,
  type SandboxHere,
} from '#src/wire/gate-link.ts'
import { MemoryKillQuestions } from './memory-kills.ts'

/**
 * Delay in ms before the next attempt to connect to the runner. It grows with each failed attempt, from `first` to
 * `longest`.
 */
const againMs = { first: 20, longest: 1000 }
const answerMs = 120_000
const newsBytes = 16 * 1024 * 1024

const isNews = Compile(GateNewsSchema)

/**
 * Parses a runner's message about its sandboxes. Returns `undefined` for a malformed message. Such a message must not end the
 * connection, or the gate would lose all other sandboxes.
 */
const readNews = (message: Buffer): GateNews | undefined => {
  try {
    const news: unknown = JSON.parse(message.toString())
    if (!isNews.Check(news)) return undefined
    const isWhose = news.type !== 'here' || news.sandbox.id === news.sandbox.assignment.sandboxId
    return isWhose ? news : undefined
  } catch {
    return undefined
  }
}

/** Thrown if the runner cannot be reached, or if the runner has sent an invalid message. */
export class RunnerAway extends Error {
  override name = 'RunnerAway'
}

type Body = AsyncIterable<Uint8Array>

export class RunnerLink implements Disposable {
  readonly memoryKills = new MemoryKillQuestions(this)
  readonly #path: string
  readonly #log: Logger
  readonly #known = new Map<string, SandboxHere>()
  readonly #waiting = new Map<string, Set<() => void>>()
  #isWhole = false
  #watching: Socket | undefined
  #timer: NodeJS.Timeout | undefined
  #failures = 0
  #isClosed = false

  constructor(path: string, log: Logger) {
    this.#path = path
    this.#log = log
    this.#watch()
  }

  get(sandboxId: string): SandboxHere | undefined {
    return this.#known.get(sandboxId)
  }

  /** Whether the runner is connected and has reported all its sandboxes. */
  get isCurrent(): boolean {
    return this.#isWhole
  }

  /** Resolves when the runner has reported this sandbox, or all its sandboxes, and at the latest after `ms`. */
  untilChanged(sandboxId: string, ms: number): Promise<void> {
    return new Promise((resolve) => {
      const waiting = this.#waiting.get(sandboxId) ?? new Set()
      const settle = () => {
        clearTimeout(timer)
        waiting.delete(settle)
        if (waiting.size === 0) this.#waiting.delete(sandboxId)
        resolve()
      }
      const timer = setTimeout(settle, ms)
      this.#waiting.set(sandboxId, waiting.add(settle))
    })
  }

  #wake(sandboxId: string) {
    for (const settle of this.#waiting.get(sandboxId) ?? []) settle()
  }

  #watch() {
    const socket = connect({ path: this.#path, allowHalfOpen: false })
    this.#watching = socket
    socket.on('error', () => socket.destroy())
    socket.once('close', () => {
      if (this.#isWhole) this.#log.warn('the runner is away; what is known of its sandboxes is served')
      this.#isWhole = false
      if (this.#isClosed) return
      const waitMs = Math.min(againMs.first * 2 ** this.#failures, againMs.longest)
      this.#failures = Math.min(this.#failures + 1, 20)
      this.#timer = setTimeout(() => this.#watch(), waitMs)
    })
    socket.write(jsonFrameOf({ ask: 'watch' } satisfies GateRequest))
    this.#hear(new Frames(socket, newsBytes)).catch((err: unknown) => {
      this.#log.debug({ err }, 'the link to the runner failed')
      socket.destroy()
    })
  }

  async #hear(frames: Frames) {
    const gone = new Set(this.#known.keys())
    for (;;) {
      const message = await frames.next()
      if (message === undefined) throw new RunnerAway('the runner has closed the link')
      const news = readNews(message)
      if (news === undefined) {
        this.#log.warn({ bytes: message.length }, 'the runner has said something that is no news, which is left out')
      } else if (news.type === 'whole') {
        this.#isWhole = true
        this.#failures = 0
        for (const sandboxId of gone) this.#known.delete(sandboxId)
        for (const sandboxId of this.#waiting.keys()) this.#wake(sandboxId)
      } else if (news.type === 'here') {
        gone.delete(news.sandbox.id)
        this.#known.set(news.sandbox.id, news.sandbox)
        this.#wake(news.sandbox.id)
      } else {
        this.#known.delete(news.sandboxId)
        this.#wake(news.sandboxId)
      }
    }
  }

  /**
   * Sends a request to the runner and returns the answer. If reading `body` fails, closes the connection, so that the
   * runner does not treat the body as complete. Throws a Problem if the runner refuses the request.
   */
  async ask<T>(request: GateRequest, body?: Body, signal?: AbortSignal): Promise<T> {
    const socket = connect({ path: this.#path, allowHalfOpen: true })
    socket.on('error', () => socket.destroy())
    const cut = () => void socket.destroy()
    const timer = setTimeout(cut, answerMs)
    signal?.addEventListener('abort', cut, { once: true })
    const answering = new Frames(socket, answerBytes).next()
    answering.catch(() => {})
    try {
      socket.write(jsonFrameOf(request))
      if (body !== undefined) await this.#send(socket, body, answering, () => timer.refresh())
      const message = await answering
      if (message === undefined) throw new RunnerAway('the runner has not answered')
      const answer = JSON.parse(message.toString()) as GateAnswer
      if ('value' in answer) return answer.value as T
      throw new Problem(answer.refused.code as ProblemCode, answer.refused.message)
    } catch (error) {
      signal?.throwIfAborted()
      throw error instanceof Problem ? error : new RunnerAway('the runner does not answer', { cause: error })
    } finally {
      clearTimeout(timer)
      signal?.removeEventListener('abort', cut)
      socket.destroy()
    }
  }

  /** Sends the body of a request to the runner. If the runner answers earlier, the rest of the body is not sent. */
  async #send(socket: Socket, body: Body, answering: Promise<unknown>, onPiece: () => void): Promise<void> {
    const over = answering.then(
      () => 'answered' as const,
      () => 'answered' as const,
    )
    const pieces = body[Symbol.asyncIterator]()
    for (;;) {
      // The runner may answer while the loop waits for the next piece of the body. So wait for either of the two.
      const next = await Promise.race([pieces.next(), over])
      if (next === 'answered') {
        void Promise.resolve(pieces.return?.()).catch(() => {})
        return
      }
      if (next.done) break
      onPiece()
      for (let at = 0; at < next.value.length; at += requestBytes) {
        const piece = next.value.subarray(at, at + requestBytes)
        await Promise.race([sendFrame(socket, frameOf(piece)), over])
      }
    }
    socket.write(frameOf(Buffer.alloc(0)))
  }

  [Symbol.dispose]() {
    this.#isClosed = true
    clearTimeout(this.#timer)
    this.#watching?.destroy()
  }
}
