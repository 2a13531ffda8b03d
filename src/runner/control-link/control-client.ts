// The runner's calls to control over plain HTTP: the list of what should be, and reports of what is.
import { type Dispatcher, Pool } from 'undici'
import type { Logger } from '#src/kit/log.ts'
import { readWhole } from '#src/kit/read-whole.ts'
import { placeHeaders } from '#src/kit/telemetry/telemetry.ts'
import type { ContextsInUse } from '#src/wire/contexts.ts'
import type { ImageAssignment, Report } from '#src/wire/runner-link.ts'
import { idOf, isContextsInUse, isImageAssignment, isRead, type Listed, readListed, type Unread } from './assignment.ts'

/** Sandboxes of one answer: some hundred KiB, or some 25 MiB where each has all the variables and labels that it may. */
const pageSize = 200
const listBytes = 256 * 1024 * 1024
const answerBytes = 64 * 1024

/** `refused`: control will not take it, however often it is told. */
export type Delivery = 'taken' | 'refused'

const tooLarge = () => new Error('control answered more than the runner reads')

/** A record of which nothing is checked yet. */
type Told = { id?: unknown; env?: unknown; assignment?: object }

/** Control says it once; an older one, which does not know that it is asked to, twice. */
const withOwnEnv = (record: Told): Told =>
  record?.assignment ? { ...record, assignment: { env: record.env, ...record.assignment } } : record

type ControlClientParts = {
  controlUrl: URL
  runnerKey: string
  log: Logger
  /** Hears the status of each answer; undefined: control could not be asked. */
  onAnswer?: (status: number | undefined) => void
}

export class ControlClient implements AsyncDisposable {
  readonly #pool: Pool
  readonly #authorization: string
  readonly #log: Logger
  readonly #onAnswer: NonNullable<ControlClientParts['onAnswer']>

  constructor({ controlUrl, runnerKey, log, onAnswer = () => undefined }: ControlClientParts) {
    this.#pool = new Pool(controlUrl.origin, {
      connections: 8,
      connect: { timeout: 3000 },
      headersTimeout: 20_000,
      bodyTimeout: 20_000,
    })
    this.#authorization = `Bearer ${runnerKey}`
    this.#log = log
    this.#onAnswer = onAnswer
  }

  /** Page after page. What control decides meanwhile may be missing: it is told, and later than this was asked for. */
  async list(): Promise<(Listed | Unread)[]> {
    const all: (Listed | Unread)[] = []
    for (let after = ''; ; after = idOf(all.at(-1)!)) {
      const page = await this.#listPage(after)
      all.push(...page)
      if (page.length < pageSize) return all
    }
  }

  async #listPage(after: string): Promise<(Listed | Unread)[]> {
    const beyond = after === '' ? '' : `&after=${encodeURIComponent(after)}`
    const told = await this.#read(`/api/sandbox/for-runner?envOnce=true&limit=${pageSize}${beyond}`)
    const page = told.map((record) => {
      const listed = readListed(withOwnEnv(record))
      // A list in part would make strangers of the rest.
      if (listed === undefined) throw new Error('control answered a sandbox without a name')
      return listed
    })
    const unread = page.filter((one) => !isRead(one)).map(idOf)
    if (unread.length > 0) this.#log.error({ sandboxes: unread.slice(0, 10) }, 'assignments that cannot be read')
    return page
  }

  /** Lists the images that should be here, without records that cannot be read: nothing follows from an image that is not listed. */
  async listImages(): Promise<ImageAssignment[]> {
    const images: readonly unknown[] = await this.#read('/api/runners/images')
    const usable = images.filter(isImageAssignment)
    if (usable.length < images.length) this.#log.error({ unusable: images.length - usable.length }, 'unusable images')
    return usable
  }

  /** Throws rather than leave anything out: what is not named may be removed. */
  async listContexts(): Promise<ContextsInUse> {
    const answer = await this.#get('/api/runners/contexts')
    if (!isContextsInUse(answer)) throw new Error('control answered a list that is none')
    return answer
  }

  async #read(path: string): Promise<Told[]> {
    const records = await this.#get(path)
    if (!Array.isArray(records)) throw new Error('control answered a list that is none')
    return records
  }

  async #get(path: string): Promise<unknown> {
    const { statusCode, body } = await this.#request({ method: 'GET', path })
    const text = (await readWhole(body, listBytes, tooLarge)).toString('utf8')
    if (statusCode !== 200) throw new Error(`control answered ${statusCode} to GET ${path}`)
    return JSON.parse(text)
  }

  /** Throws when control could not be asked or could not answer. */
  async tell({ sandboxId, ...report }: Report): Promise<Delivery> {
    const { statusCode, body } = await this.#request({
      method: 'PUT',
      path: `/api/sandbox/${encodeURIComponent(sandboxId)}/state`,
      headers: { ...placeHeaders(), 'content-type': 'application/json' },
      body: JSON.stringify(report),
    })
    const text = (await readWhole(body, answerBytes, tooLarge)).toString('utf8')
    if (statusCode < 300) return 'taken'
    if ([400, 404, 409].includes(statusCode)) {
      this.#log.info({ sandboxId, statusCode, answer: text.slice(0, 500) }, 'control refused a report')
      return 'refused'
    }
    throw new Error(`control answered ${statusCode} to a report`)
  }

  async #request(request: Dispatcher.RequestOptions & { headers?: Record<string, string> }) {
    const headers = { ...request.headers, authorization: this.#authorization }
    try {
      const reply = await this.#pool.request({ ...request, headers })
      this.#onAnswer(reply.statusCode)
      return reply
    } catch (error) {
      this.#onAnswer(undefined)
      throw error
    }
  }

  async [Symbol.asyncDispose]() {
    await this.#pool.destroy()
  }
}
