// The runner's HTTP requests to control: it sends reports, and fetches lists of sandboxes, images, volumes, secrets and contexts.
import { type Dispatcher, Pool } from 'undici'
import { type Credential, connectorFor } from '#src/kit/credential.ts'
import type { Logger } from '#src/kit/log.ts'
import { readWhole } from '#src/kit/read-whole.ts'
import { placeHeaders } from '#src/kit/telemetry/telemetry.ts'
import type { ContextsInUse } from '#src/wire/contexts.ts'
import type { ImageAssignment, Report, VolumeAssignment } from '#src/wire/runner-link.ts'
import type { SecretsOfRunner } from '#src/wire/secrets.ts'
import {
  idOf,
  isContextsInUse,
  isImageAssignment,
  isRead,
  isSecretsOfRunner,
  isVolumeAssignment,
  type ListedSandbox,
  readListed,
  type UnreadableSandbox,
} from './assignment.ts'

/** Number of sandboxes on a page of control's list. With the most variables and labels allowed, a page has about 25 MiB. */
const pageSize = 200
const listBytes = 256 * 1024 * 1024
const answerBytes = 64 * 1024

/** Result of sending a report. `refused`: control will never accept this report, so it must not be sent again. */
export type Delivery = 'taken' | 'refused'

const tooLarge = () => new Error('control answered more than the runner reads')

/** An entry of control's list of sandboxes, before it is checked. */
type UncheckedRecord = { id?: unknown; env?: unknown; assignment?: object }

/** Copies the field `env` of an entry into the entry's assignment. Older versions of control put `env` there already. */
const withOwnEnv = (record: UncheckedRecord): UncheckedRecord =>
  record?.assignment ? { ...record, assignment: { env: record.env, ...record.assignment } } : record

type ControlClientParts = {
  controlUrl: URL
  credential: Credential
  log: Logger
  /** Called with the HTTP status of each answer from control, or with undefined if control could not be reached. */
  onAnswer?: (status: number | undefined) => void
}

export class ControlClient implements AsyncDisposable {
  readonly #pool: Pool
  readonly #credential: Credential
  readonly #log: Logger
  readonly #onAnswer: NonNullable<ControlClientParts['onAnswer']>

  constructor({ controlUrl, credential, log, onAnswer = () => undefined }: ControlClientParts) {
    this.#pool = new Pool(controlUrl.origin, {
      connections: 8,
      connect: connectorFor(credential, 3000),
      headersTimeout: 20_000,
      bodyTimeout: 20_000,
    })
    this.#credential = credential
    this.#log = log
    this.#onAnswer = onAnswer
  }

  /** Fetches all pages of control's list of this runner's sandboxes. Control sends later changes over the link. */
  async list(): Promise<(ListedSandbox | UnreadableSandbox)[]> {
    const all: (ListedSandbox | UnreadableSandbox)[] = []
    for (let after = ''; ; after = idOf(all.at(-1)!)) {
      const page = await this.#listPage(after)
      all.push(...page)
      if (page.length < pageSize) return all
    }
  }

  async #listPage(after: string): Promise<(ListedSandbox | UnreadableSandbox)[]> {
    const beyond = after === '' ? '' : `&after=${encodeURIComponent(after)}`
    const told = await this.#read(`/api/sandbox/for-runner?envOnce=true&limit=${pageSize}${beyond}`)
    const page = told.map((record) => {
      const listed = readListed(withOwnEnv(record))
      // An entry without a valid id makes the whole list invalid. If only the entry were ignored, its sandbox would count as a
      // stranger.
      if (listed === undefined) throw new Error('control answered a sandbox without a name')
      return listed
    })
    const unread = page.filter((one) => !isRead(one)).map(idOf)
    if (unread.length > 0) this.#log.error({ sandboxes: unread.slice(0, 10) }, 'assignments that cannot be read')
    return page
  }

  /** Fetches control's list of the images for this host, without invalid entries. An image that the list lacks is not removed. */
  async listImages(): Promise<ImageAssignment[]> {
    const images: readonly unknown[] = await this.#read('/api/runners/images')
    const usable = images.filter(isImageAssignment)
    if (usable.length < images.length) this.#log.error({ unusable: images.length - usable.length }, 'unusable images')
    return usable
  }

  /** Fetches control's list of the volumes that this host should remove. Invalid entries are omitted, so their volumes stay. */
  async listVolumes(): Promise<VolumeAssignment[]> {
    const volumes: readonly unknown[] = await this.#read('/api/runners/volumes')
    return volumes.filter(isVolumeAssignment)
  }

  /** Fetches the secrets that sandboxes of this host use. If this throws, the caller keeps the secrets that it has. */
  async listSecrets(): Promise<SecretsOfRunner> {
    const answer = await this.#get('/api/runners/secrets')
    if (!isSecretsOfRunner(answer)) throw new Error('control answered secrets that cannot be read')
    return answer
  }

  /**
   * Fetches the list of the contexts in use. Throws if the list is invalid, because the runner removes contexts that the list
   * lacks.
   */
  async listContexts(): Promise<ContextsInUse> {
    const answer = await this.#get('/api/runners/contexts')
    if (!isContextsInUse(answer)) throw new Error('control answered a list that is none')
    return answer
  }

  async #read(path: string): Promise<UncheckedRecord[]> {
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

  /** Sends a report to control. Throws if control could not be reached, or cannot process the report now. */
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
    const headers = { ...request.headers, ...this.#credential.headers }
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
