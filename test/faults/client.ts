// Makes calls to a server whose programs may be killed at any moment. A call without an answer may have been performed.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Platform } from '../sandboxes/harness.ts'

export type Record_ = {
  id: string
  name: string
  state: string
  errorReason?: string
  recoverable?: boolean
  toolboxProxyUrl: string
}

export type Answer = { status: number; body: unknown }

/**
 * Whether the answer, or the lack of one, means that the server is starting or stopping. `answer` is undefined if the connection
 * ended without an answer.
 */
const isAway = (answer: Answer | undefined): boolean => answer === undefined || [502, 503, 504].includes(answer.status)

export class Away extends Error {}

export class Client {
  readonly #platform: Pick<Platform, 'url' | 'key'>
  /** A line for each forbidden answer that the server has given, even if a program was killed at the time. */
  readonly wrong: string[] = []

  constructor(platform: Pick<Platform, 'url' | 'key'>) {
    this.#platform = platform
  }

  /** Makes a call once, without a retry. */
  async once(
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<Answer | undefined> {
    return await this.#call(`${this.#platform.url}/api${path}`, method, body, headers)
  }

  /**
   * Repeats a call until the server answers. The server may perform the call several times, so use this method only for calls where
   * that is harmless.
   */
  async sure(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer> {
    return await this.#until(() => this.once(method, path, body, headers), `${method} ${path}`)
  }

  async get(idOrName: string): Promise<Record_ | undefined> {
    const { status, body } = await this.sure('GET', `/sandbox/${idOrName}`)
    return status === 404 ? undefined : (body as Record_)
  }

  /** Runs a command and returns its output. Returns `undefined` if the command may not have run to its end. */
  async execute(
    { id, toolboxProxyUrl }: Record_,
    command: string,
  ): Promise<{ exitCode: number; result: string } | undefined> {
    const url = `${toolboxProxyUrl}/${id}/process/execute`
    const answer = await this.#call(url, 'POST', { command, timeout: 30 }, {})
    return answer?.status === 200 ? (answer.body as { exitCode: number; result: string }) : undefined
  }

  /** Makes a call to the toolbox of a sandbox once, without a retry. */
  async toolbox(
    { id, toolboxProxyUrl }: Record_,
    method: string,
    path: string,
    body?: unknown,
  ): Promise<Answer | undefined> {
    return await this.#call(`${toolboxProxyUrl}/${id}${path}`, method, body, {})
  }

  /** Fetches the page at a URL. Returns `undefined` if there was no answer, or only a part of an answer. */
  async page(url: string, headers: Record<string, string> = {}): Promise<{ status: number; text: string } | undefined> {
    try {
      const authorization = `Bearer ${this.#platform.key}`
      const reply = await fetch(url, { headers: { authorization, ...headers }, signal: AbortSignal.timeout(60_000) })
      return { status: reply.status, text: await reply.text() }
    } catch {
      return undefined
    }
  }

  async #call(
    url: string,
    method: string,
    body: unknown,
    headers: Record<string, string>,
  ): Promise<Answer | undefined> {
    try {
      const reply = await fetch(url, {
        method,
        headers: {
          authorization: `Bearer ${this.#platform.key}`,
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        signal: AbortSignal.timeout(60_000),
      })
      const text = await reply.text()
      const answer = { status: reply.status, body: text === '' ? undefined : JSON.parse(text) }
      if (reply.status === 500) this.wrong.push(`${method} ${url}: 500 ${text.slice(0, 300)}`)
      return answer
    } catch {
      return undefined
    }
  }

  async #until(ask: () => Promise<Answer | undefined>, what: string): Promise<Answer> {
    const end = Date.now() + 120_000
    for (;;) {
      const answer = await ask()
      if (!isAway(answer)) return answer as Answer
      if (Date.now() > end) throw new Away(`no answer within two minutes: ${what}`)
      await sleep(100)
    }
  }
}
