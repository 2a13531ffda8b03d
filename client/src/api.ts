// The calls to a server's API that the commands make.
import { type CallOptions, callServer, openCall } from './call.ts'
import { exitCodes, Failure } from './failure.ts'
import type { Access } from './session/access.ts'

export type Query = Record<string, string | undefined>

type Options = { query?: Query | undefined; body?: object | undefined; patience?: number }

/** Returns a URL path. The names in it are encoded, so that a name such as `../x` cannot lead to another path. */
export const path = (strings: TemplateStringsArray, ...names: string[]): string =>
  String.raw({ raw: strings }, ...names.map(segment))

// URL parsers would resolve `.` and `..`, even encoded. With the prefix `%00`, the server answers 404: nothing has such a name.
const segment = (name: string): string => (/^\.{1,2}$/.test(name) ? `%00${name}` : encodeURIComponent(name))

export class Api {
  readonly #access: Access
  readonly #organization: string | undefined
  readonly #signal: AbortSignal | undefined

  constructor(access: Access, parts: { organization?: string | undefined; signal?: AbortSignal | undefined } = {}) {
    this.#access = access
    this.#organization = parts.organization
    this.#signal = parts.signal
  }

  /** Returns an `Api` with the same access, whose calls go on even if the user interrupts the program. */
  uninterrupted(): Api {
    return new Api(this.#access, { organization: this.#organization })
  }

  get signal(): AbortSignal | undefined {
    return this.#signal
  }

  async headers(): Promise<Record<string, string>> {
    return {
      authorization: `Bearer ${await this.#access.token()}`,
      ...(this.#organization === undefined ? {} : { 'x-daytona-organization-id': this.#organization }),
    }
  }

  async #options(method: string, { body, patience }: Options): Promise<CallOptions> {
    const type = body === undefined ? {} : { 'content-type': 'application/json' }
    return {
      method,
      headers: { ...(await this.headers()), ...type },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(patience === undefined ? {} : { patience }),
      signal: this.#signal,
    }
  }

  #url(where: string, query: Query = {}): string {
    const given = Object.entries(query).filter((entry): entry is [string, string] => entry[1] !== undefined)
    const text = new URLSearchParams(given).toString()
    return `${this.#access.apiUrl}${where}${text === '' ? '' : `?${text}`}`
  }

  async ask<Answer>(method: string, where: string, options: Options = {}): Promise<Answer> {
    return await callServer<Answer>(this.#url(where, options.query), await this.#options(method, options))
  }

  /** Fetches one page of a list. Throws a Failure if the answer has no list: then another program than Alcove has answered. */
  async askPage<Page extends { items: unknown[] }>(where: string, query: Query): Promise<Page> {
    const answer = await this.ask<Page>('GET', where, { query })
    if (Array.isArray(answer?.items)) return answer
    throw new Failure('The server did not answer with a list. Is it an Alcove server?', exitCodes.serverError)
  }

  /** Makes a GET call and returns when the headers arrive. The body may take long, for example if the call follows a log. */
  async open(where: string, options: Options = {}): Promise<Response> {
    return await openCall(this.#url(where, options.query), await this.#options('GET', options))
  }
}
