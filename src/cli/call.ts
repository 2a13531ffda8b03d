// Calls the API of a server for the commands. If the call fails, the error is a sentence for the user.
import { Complaint } from '#src/up/complaint.ts'

const patienceMs = 30_000

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

/**
 * Calls a server. Throws a Complaint if it does not answer within 30 s, if it refuses, or if it is not an Alcove
 * server.
 */
export const callServer = async <Answer>(url: string, init: RequestInit): Promise<Answer> => {
  const { origin } = new URL(url)
  const { reply, text } = await fetch(url, { ...init, signal: AbortSignal.timeout(patienceMs) })
    .then(async (reply) => ({ reply, text: await reply.text() }))
    .catch((error: Error) => {
      const why = (error.cause as Error | undefined)?.message || error.message
      throw new Complaint(`the server at ${origin} does not answer: ${why}`, { cause: error })
    })
  const answer = readAnswer(text)
  if (!reply.ok) throw new Complaint(sentenceOf(answer) ?? `the server at ${origin} answered ${reply.status}`)
  if (answer === undefined) throw new Complaint(`what answers at ${origin} is no Alcove server`)
  return answer as Answer
}
