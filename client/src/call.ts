// Calls the API of a server. If a call fails, the error has a message for the user.
import { cleanLine, cleanLines } from './clean.ts'
import { exitCodeOf, exitCodes, Failure } from './failure.ts'
import { Interrupted } from './interruption.ts'

const patienceMs = 30_000
/** Maximum size of an answer in bytes. Even the largest answer of Alcove, a page of 200 sandboxes, is far smaller. */
const mostAnswerBytes = 64 * 1024 * 1024

const sentenceOf = (answer: unknown): string | undefined => {
  const message = (answer as { message?: unknown } | null)?.message
  return typeof message === 'string' ? message : undefined
}

/** Parses the text of an answer. Returns `{}` for an empty answer, and undefined for an answer that is not JSON. */
const readAnswer = (text: string): unknown => {
  try {
    return text === '' ? {} : JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The error for a refused call: the server's message, and the request id, by which the operator finds the call in the log. */
export const refusalOf = (
  origin: string,
  { status, text, requestId }: { status: number; text: string; requestId: string | undefined },
): Failure => {
  const sentence = sentenceOf(readAnswer(text)) ?? `The server at ${origin} answered with status ${status}.`
  const told = requestId === undefined ? '' : ` (request ${requestId})`
  return new Failure(cleanLines(`${sentence}${told}`), exitCodeOf(status), { status })
}

const readWhole = async (reply: Response): Promise<string> => {
  const pieces: Uint8Array[] = []
  let size = 0
  for await (const piece of (reply.body ?? []) as AsyncIterable<Uint8Array>) {
    size += piece.length
    if (size > mostAnswerBytes) throw new Error('its answer is too long')
    pieces.push(piece)
  }
  return Buffer.concat(pieces).toString()
}

const reasonOf = (error: Error): string => {
  const cause = error.cause as { message?: string; code?: string } | undefined
  return cleanLines(cause?.message || cause?.code || error.message)
}

/** Returns the error for a server that cannot be reached. If `error` is an interruption by the user, returns it unchanged. */
export const unreachable = (origin: string, error: Error): Error => {
  if (error instanceof Interrupted) return error
  if (error.name === 'TimeoutError')
    return new Failure(`The server at ${origin} took too long to answer.`, exitCodes.tryAgain)
  const sentence = `The server at ${origin} does not answer: ${reasonOf(error)}`
  return new Failure(sentence, exitCodes.unreachable, { cause: error })
}

/** The error for a redirect. No redirect is followed, because only the user may choose who gets the credential. */
const movedTo = (origin: string, address: string): Failure =>
  new Failure(
    `The server at ${origin} redirects to ${cleanLine(address)}. If you trust that address, use it instead.`,
    exitCodes.refused,
  )

/** Error codes of Node that mean that no connection to the server was made. */
const noConnection = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH'])

/** Returns true if a failed call has certainly not reached a server, because no connection was made. */
export const wasNotSent = ({ cause }: Failure): boolean => {
  const { code } = ((cause as Error | undefined)?.cause ?? {}) as { code?: string }
  return code !== undefined && noConnection.has(code)
}

export type CallOptions = {
  method?: string
  headers?: Record<string, string>
  body?: string
  /** Aborted when the user interrupts the program. */
  signal?: AbortSignal | undefined
  /** How long the call may take, in ms. Default: 30 s. */
  patience?: number
}

/**
 * Calls a server and returns the answer with an unread body. Throws a Failure if the server cannot be reached or refuses the call.
 */
export const openCall = async (url: string, { signal, patience, ...init }: CallOptions = {}): Promise<Response> => {
  const { origin } = new URL(url)
  const late = AbortSignal.timeout(patience ?? patienceMs)
  const until = signal === undefined ? late : AbortSignal.any([signal, late])
  let reply: Response
  let text: string
  try {
    // The call does not follow redirects, because a redirect could send the credential to another server.
    reply = await fetch(url, { ...init, signal: until, redirect: 'manual' })
    if (reply.ok) return reply
    text = await readWhole(reply)
  } catch (error) {
    throw unreachable(origin, error as Error)
  }
  const elsewhere = reply.headers.get('location')
  if (reply.status >= 300 && reply.status < 400 && elsewhere !== null) throw movedTo(origin, elsewhere)
  throw refusalOf(origin, { status: reply.status, text, requestId: reply.headers.get('x-request-id') ?? undefined })
}

/**
 * Calls a server and returns its parsed answer. Throws a Failure like the function `openCall`, and also if the answer is not JSON.
 */
export const callServer = async <Answer>(url: string, options: CallOptions = {}): Promise<Answer> => {
  const { origin } = new URL(url)
  const reply = await openCall(url, options)
  const text = await readWhole(reply).catch((error: Error) => {
    throw unreachable(origin, error)
  })
  const answer = readAnswer(text)
  if (answer === undefined) throw new Failure(`The server at ${origin} is not an Alcove server.`, exitCodes.serverError)
  return answer as Answer
}
