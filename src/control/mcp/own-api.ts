// Calls our own HTTP API in the name of the caller of `/mcp`, with the guard, rate limits, quotas and audit of any call.
import type { FastifyRequest } from 'fastify'
import { readWhole } from '#src/kit/read-whole.ts'

/** An error of a tool. The model that called the tool reads the message, which says what the model can do. */
export class ToolError extends Error {}

type Method = 'GET' | 'POST' | 'PUT' | 'DELETE'
type ToolboxCall = {
  query?: Record<string, string>
  body?: unknown
  /** The request body as text, instead of a JSON object. */
  text?: string
  headers?: Record<string, string>
  timeoutSeconds?: number
}

/** Maximum size in bytes of an answer of the toolbox. */
const mostBytes = 16 * 1024 ** 2
/** Seconds that a call of the toolbox may take in addition to the timeout of the command that it runs. */
const spareSeconds = 30

const passedOn = ['authorization', 'x-daytona-organization-id', 'x-service-organization-id'] as const

const tooLong = () =>
  new ToolError('The answer is longer than 16 MiB. Write the output to a file, and read parts of that file.')

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** Converts an error reply of the API to an error whose message the model can read. */
const refusalOf = (status: number, body: unknown): ToolError => {
  const { message = 'The call failed.', code = '' } = (body ?? {}) as { message?: string; code?: string }
  return new ToolError(`${message} (${[status, code].filter((word) => word !== '').join(' ')})`)
}

export class OwnApi {
  readonly #request: FastifyRequest
  readonly #toolboxUrl: string
  /** This signal is aborted when the caller ends its call of `/mcp`. The calls to toolboxes are then aborted too. */
  readonly #ended: AbortSignal

  /** `request` is the caller's call of `/mcp`. `proxyUrl` is the URL of this server's gate. */
  constructor(request: FastifyRequest, proxyUrl: string, ended: AbortSignal) {
    this.#request = request
    this.#toolboxUrl = `${proxyUrl}/toolbox`
    this.#ended = ended
  }

  /** Calls an endpoint of control. Returns the body of the answer. */
  async control(method: Method, path: string, body?: object): Promise<unknown> {
    const reply = await this.#request.server.inject({
      ...{ method, url: `/api${path}`, headers: this.#headers() },
      remoteAddress: this.#request.ip,
      ...(body === undefined ? {} : { payload: body }),
    })
    const answer = parsed(reply.body)
    if (reply.statusCode >= 400) throw refusalOf(reply.statusCode, answer)
    return answer
  }

  /** Calls an endpoint of the toolbox of a sandbox. Returns the answer's bytes and its headers. */
  async toolboxBytes(
    sandbox: string,
    method: Method,
    path: string,
    { query = {}, body, text, headers = {}, timeoutSeconds = 60 }: ToolboxCall = {},
  ): Promise<{ bytes: Buffer; headers: Headers }> {
    const { id } = (await this.control('GET', `/sandbox/${encodeURIComponent(sandbox)}`)) as {
      id: string
    }
    const url = `${this.#toolboxUrl}/${id}${path}?${new URLSearchParams(query)}`
    const type = text === undefined ? 'application/json' : 'application/octet-stream'
    const sent = text ?? (body === undefined ? undefined : JSON.stringify(body))
    const timeout = AbortSignal.timeout((timeoutSeconds + spareSeconds) * 1000)
    const response = await fetch(url, {
      ...{ method, headers: { ...this.#headers(), ...headers } },
      signal: AbortSignal.any([timeout, this.#ended]),
      ...(sent === undefined ? {} : { body: sent, headers: { ...this.#headers(), 'content-type': type, ...headers } }),
    }).catch((error: unknown) => {
      throw new ToolError('The sandbox cannot be reached now. Try again in some seconds.', { cause: error })
    })
    const bytes = await readWhole(response.body ?? [], mostBytes, tooLong)
    if (!response.ok) throw refusalOf(response.status, parsed(bytes.toString()))
    return { bytes, headers: response.headers }
  }

  /** Calls an endpoint of the toolbox of a sandbox. Returns the parsed body of the answer. */
  async toolbox(...call: Parameters<OwnApi['toolboxBytes']>): Promise<unknown> {
    return parsed((await this.toolboxBytes(...call)).bytes.toString())
  }

  #headers(): Record<string, string> {
    const given = passedOn.map((name) => [name, this.#request.headers[name]])
    return Object.fromEntries(given.filter(([, value]) => typeof value === 'string')) as Record<string, string>
  }
}
