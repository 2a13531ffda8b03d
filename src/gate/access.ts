// Asks control whether a caller may reach a sandbox and where the sandbox is, unless control has sent its answer ahead. An
// answer that allows a call is cached for at most a second. A refusal is never cached. The cache contains only hashes of
// credentials.
import { Pool } from 'undici'
import { type Credential, connectorFor } from '#src/kit/credential.ts'
import { readWhole } from '#src/kit/read-whole.ts'
import { placeHeaders, span } from '#src/kit/telemetry/telemetry.ts'
import { Problem, type ProblemCode } from '#src/problems.ts'
import {
  type Access,
  type AccessAhead,
  type AccessQuestion,
  accessKeptMs,
  keyOfQuestion,
  type VariableAnswer,
  type VariableQuestion,
} from '#src/wire/access.ts'
import type { UploadAccess, UploadQuestion } from '#src/wire/contexts.ts'
import type { TicketKey, TicketKeys } from '#src/wire/ticket.ts'

const keptAnswers = 4096
const openQuestions = 1024
const answerBytes = 64 * 1024

const refusals: Record<number, ProblemCode> = {
  400: 'bad_request',
  401: 'unauthorized',
  403: 'forbidden',
  404: 'not_found',
  409: 'conflict',
  410: 'gone',
  429: 'rate_limited',
  502: 'bad_gateway',
}

const unavailable = (cause: unknown) =>
  new Problem('unavailable', 'The control service does not answer; try again.', { cause })

const isAccess = (body: Partial<Access> | null): body is Access =>
  typeof body?.sandboxId === 'string' &&
  typeof body.runnerAddress === 'string' &&
  typeof body.isStarted === 'boolean' &&
  typeof body.openedBy === 'string' &&
  typeof body.ticket === 'string'

const isAhead = (said: Partial<AccessAhead> | null): said is AccessAhead =>
  said?.type === 'access' &&
  typeof said.question === 'string' &&
  typeof said.at === 'number' &&
  isAccess(said.access ?? null)

/** An answer that control sends ahead is ignored if its time is more than this many ms in the future by the gate's clock. */
const clockSkewMs = 50

const isTicketKeys = (body: Partial<TicketKeys> | null): body is TicketKeys =>
  Array.isArray(body?.keys) &&
  body.keys.every((key: Partial<TicketKey> | null) => typeof key?.id === 'string' && typeof key.publicKey === 'string')

const isUploadAccess = (body: Partial<UploadAccess> | null): body is UploadAccess =>
  typeof body?.organizationId === 'string' && typeof body.secret === 'string' && typeof body.runnerAddress === 'string'

export class AccessDesk implements AsyncDisposable {
  readonly #control: Pool
  readonly #credential: Credential
  readonly #kept = new Map<string, { access: Access; until: number }>()
  #uploads = 0
  readonly #open = new Map<string, { asking: Promise<Access>; until: number }>()
  #questions = 0

  constructor({ controlUrl, credential }: { controlUrl: URL; credential: Credential }) {
    this.#control = new Pool(controlUrl.origin, {
      connections: 32,
      pipelining: 1,
      connect: connectorFor(credential, 2000),
      headersTimeout: 5000,
      bodyTimeout: 5000,
      keepAliveTimeout: 60_000,
    })
    this.#credential = credential
  }

  /** Returns a cached answer, or asks control. Throws control's refusal as a Problem. */
  ask(question: AccessQuestion): Promise<Access> {
    const key = keyOfQuestion(question)
    const kept = this.#kept.get(key)
    if (kept && kept.until > performance.now()) return Promise.resolve(kept.access)
    const open = this.#open.get(key)
    if (open && open.until > performance.now()) return open.asking
    if (this.#questions >= openQuestions) return Promise.reject(unavailable('too many open questions'))
    this.#questions += 1
    // The gate keeps the access for `accessKeptMs` from now, before the question is sent. So if control withdraws the access while
    // the question is pending, the access ends within a second.
    const until = performance.now() + accessKeptMs
    const asking = this.askAnew(question)
      .then((access) => this.#keep(key, access, until))
      .finally(() => {
        this.#questions -= 1
        if (this.#open.get(key)?.asking === asking) this.#open.delete(key)
      })
    this.#open.set(key, { asking, until })
    return asking
  }

  /**
   * Caches an answer that control sends ahead. If the answer is too old or malformed, the gate asks control when the call comes.
   */
  hear(text: string): Access | undefined {
    const said = parsed(text) as Partial<AccessAhead> | null
    if (!isAhead(said)) return undefined
    const age = Date.now() - said.at
    if (age < -clockSkewMs || age >= accessKeptMs) return undefined
    return this.#keep(said.question, said.access, performance.now() + accessKeptMs - Math.max(age, 0))
  }

  /**
   * Asks control without using cached answers. For a call that stays open, this checks again whether the caller still
   * has access.
   */
  async askAnew(question: AccessQuestion): Promise<Access> {
    // A call without a credential can only reach a port that is open to everybody, never a toolbox.
    if (question.credentials.length === 0 && question.port === undefined) throw new Problem('unauthorized')
    const body: Partial<Access> | null = await this.#asked('/api/proxy/access', question)
    if (isAccess(body)) return body
    throw unavailable('control answered something that is no access')
  }

  /**
   * Asks control which organization's files the credentials of an upload (object storage) may access. The answer is not
   * cached.
   */
  async askForUpload({ accessKey, sessionToken }: UploadQuestion): Promise<UploadAccess> {
    if (this.#uploads >= openQuestions) throw unavailable('too many open questions')
    this.#uploads += 1
    const asking = this.#asked('/api/proxy/object-storage', { accessKey, sessionToken })
    const body: Partial<UploadAccess> | null = await asking.finally(() => {
      this.#uploads -= 1
    })
    if (isUploadAccess(body)) return body
    throw unavailable('control answered something that is no access')
  }

  /** Asks control to change the environment variables of the sandbox that the ticket names. */
  async changeVariables(question: VariableQuestion): Promise<VariableAnswer> {
    const body: Partial<VariableAnswer> | null = await this.#asked('/api/proxy/env', question)
    if (typeof body?.generation === 'number') return { generation: body.generation }
    throw unavailable('control answered something that is no generation')
  }

  async listTicketKeys(): Promise<TicketKey[]> {
    const body: Partial<TicketKeys> | null = await this.#asked('/api/proxy/ticket-keys')
    if (isTicketKeys(body)) return body.keys
    throw unavailable('control answered something that is no list of keys')
  }

  /** Sends a question to control and returns its answer. Throws control's refusal. */
  async #asked(path: string, question?: object): Promise<object | null> {
    const answer = await this.#send(path, question).catch((error) => {
      throw unavailable(error)
    })
    const body = parsed(answer.text)
    if (answer.statusCode === 200) return body
    const code = refusals[answer.statusCode]
    if (code === undefined) throw unavailable(`control answered ${answer.statusCode}`)
    throw new Problem(code, typeof body?.message === 'string' ? body.message : undefined)
  }

  #send(path: string, question: object | undefined) {
    const method = question === undefined ? 'GET' : 'POST'
    return span(
      `${method} ${path}`,
      { kind: 'client', attributes: { 'http.request.method': method } },
      async (asking) => {
        const { statusCode, body } = await this.#control.request({
          method,
          path,
          headers: {
            ...placeHeaders(),
            ...this.#credential.headers,
            ...(question === undefined ? {} : { 'content-type': 'application/json' }),
          },
          ...(question === undefined ? {} : { body: JSON.stringify(question) }),
        })
        asking.set({ 'http.response.status_code': statusCode })
        return { statusCode, text: (await readWhole(body, answerBytes, tooLarge)).toString('utf8') }
      },
    )
  }

  /** Caches an answer if its sandbox is started. Any other sandbox may start at any moment. */
  #keep(key: string, access: Access, until: number): Access {
    if (!access.isStarted) return access
    this.#kept.delete(key)
    this.#kept.set(key, { access, until })
    if (this.#kept.size > keptAnswers) this.#kept.delete(this.#kept.keys().next().value!)
    return access
  }

  async [Symbol.asyncDispose]() {
    await this.#control.destroy()
  }
}

const tooLarge = () => new Error('control answered more than an access can be')

const parsed = (text: string): { message?: unknown } | null => {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
