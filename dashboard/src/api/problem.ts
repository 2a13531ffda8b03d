import { shownLines } from '../ui/shown-text.ts'

/** Maximum length of an error message, in characters. A longer message is cut. */
const longestSentence = 2000

/** An answer of the server that is not a success. `message` is the server's own error message. */
export class ApiProblem extends Error {
  readonly status: number
  /** The error code, for programs. Undefined if the answer did not come from Alcove, for example if a proxy sent it. */
  readonly code: string | undefined
  /** The id of the request in the server's log. */
  readonly requestId: string | undefined

  constructor(message: string, parts: { status: number; code?: string | undefined; requestId?: string | undefined }) {
    super(message)
    this.name = 'ApiProblem'
    this.status = parts.status
    this.code = parts.code
    this.requestId = parts.requestId
  }
}

/**
 * Turns a refusal into an error. `body`: the parsed body, or undefined. The message in the body is cleaned, because it may quote
 * untrusted text such as a file name in a sandbox.
 */
export const problemOf = (response: Response, body: unknown): ApiProblem => {
  const { message, code } = (typeof body === 'object' && body !== null ? body : {}) as Record<string, unknown>
  const sentence = Array.isArray(message) ? message.join(' ') : message
  return new ApiProblem(
    typeof sentence === 'string' && sentence !== ''
      ? shownLines(sentence.slice(0, longestSentence))
      : `The server answered with status ${response.status}.`,
    {
      status: response.status,
      code: typeof code === 'string' ? code : undefined,
      requestId: response.headers.get('x-request-id') ?? undefined,
    },
  )
}

export const unreachable = () => new ApiProblem('The server cannot be reached. Is it running?', { status: 0 })
