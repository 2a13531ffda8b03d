import { shownLines } from '../ui/shown-text.ts'

/** The longest sentence that is shown, in characters. A longer one is cut. The server's usual sentences are shorter. */
const longestSentence = 2000

/** An answer of the server that is not a success. `message` is the server's own sentence. */
export class ApiProblem extends Error {
  readonly status: number
  /** The error code, for programs. Undefined if the answer did not come from Alcove, but from a proxy for example. */
  readonly code: string | undefined
  /** The id under which the server's log has this call. */
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
 * Turns an answer that is not a success into an error. `body` is the body of the answer, if it could be read. Its sentence may
 * quote what a program in a sandbox has written, such as the name of a file.
 */
export const problemOf = (response: Response, body: unknown): ApiProblem => {
  const { message, code } = (typeof body === 'object' && body !== null ? body : {}) as Record<string, unknown>
  const sentence = Array.isArray(message) ? message.join(' ') : message
  return new ApiProblem(
    typeof sentence === 'string' && sentence !== ''
      ? shownLines(sentence.slice(0, longestSentence))
      : `The server answered ${response.status}.`,
    {
      status: response.status,
      code: typeof code === 'string' ? code : undefined,
      requestId: response.headers.get('x-request-id') ?? undefined,
    },
  )
}

export const unreachable = () => new ApiProblem('The server cannot be reached. Is it running?', { status: 0 })
