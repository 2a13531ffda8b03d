// Reads the messages of the worker (worker.py). Hostile code can write to the same output, so the length of lines is limited, and
// lines that are not messages are skipped.

/** `id`: id of the run; `null` between runs. */
type About = { id: string | null }

/**
 * A message from worker.py. `deadline`: in ms since 1970. The gate sends a random word when it asks whether the worker is free. The
 * worker repeats this word in `asked`.
 */
export type WorkerMessage = About &
  (
    | { type: 'start'; deadline: number | null }
    | { type: 'stdout' | 'stderr'; text: string }
    | { type: 'error'; name: string; value: string; traceback: string }
    | {
        type: 'display'
        /** The value of the run's last expression, as text or base64 for each media type. */
        formats: Record<string, string>
      }
    | { type: 'done' }
    | { type: 'free'; asked: string }
  )

/** Maximum length of a line; the worker's messages are far shorter. */
export const lineBytes = 1024 * 1024
const newline = 10

/**
 * Length of the shortest message, and the first bytes of every message. Checking these is a hundred times faster than parsing a
 * line.
 */
const leastBytes = 24
const opening = Buffer.from('{"id"')

const isText = (value: unknown): value is string => typeof value === 'string'
const isTexts = (value: unknown): value is Record<string, string> =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && Object.values(value).every(isText)

const maySay = (line: Buffer): boolean => line.length >= leastBytes && opening.equals(line.subarray(0, opening.length))

const readMessage = (line: Buffer): WorkerMessage | undefined => {
  if (!maySay(line)) return undefined
  let given: Record<string, unknown>
  try {
    given = JSON.parse(line.toString())
  } catch {
    return undefined
  }
  if (typeof given !== 'object' || given === null) return undefined
  const { id, type, text, name, value, traceback, deadline, asked, formats } = given
  if (id !== null && !isText(id)) return undefined
  if (type === 'done') return { id, type }
  if (type === 'display' && isTexts(formats)) return { id, type, formats }
  if (type === 'free' && isText(asked)) return { id, type, asked }
  if (type === 'start') return { id, type, deadline: Number.isFinite(deadline) ? (deadline as number) : null }
  if ((type === 'stdout' || type === 'stderr') && isText(text)) return { id, type, text }
  if (type === 'error' && isText(name) && isText(value) && isText(traceback))
    return { id, type, name, value, traceback }
  return undefined
}

/**
 * Maximum number of lines that look like messages but are not. After this many lines, the search for the last message gives
 * up.
 */
const mostTries = 64

/** Returns the last complete line that is a message. */
export const lastMessage = (tail: Buffer): WorkerMessage | undefined => {
  let tries = 0
  for (let end = tail.lastIndexOf(newline); end > 0; ) {
    const begin = tail.lastIndexOf(newline, end - 1)
    const line = tail.subarray(begin + 1, end)
    if (maySay(line) && ++tries > mostTries) return undefined
    const message = readMessage(line)
    if (message) return message
    end = begin
  }
  return undefined
}

/** Splits output into messages. */
export class MessageReader {
  #pieces: Buffer[] = []
  #size = 0
  #isSkipping: boolean

  /** `startsInside`: the interpreter's output may start in the middle of a line. Then the reader skips the rest of that line. */
  constructor(startsInside = false) {
    this.#isSkipping = startsInside
  }

  /** Ignores the current line until its newline. Call this if output was lost: the line is incomplete, and is not a message. */
  skip(): void {
    this.#pieces = []
    this.#size = 0
    this.#isSkipping = true
  }

  push(data: Buffer): WorkerMessage[] {
    const messages: WorkerMessage[] = []
    for (let at = 0; at < data.length; ) {
      const end = data.indexOf(newline, at)
      this.#add(data.subarray(at, end < 0 ? undefined : end))
      if (end < 0) break
      const isShort = this.#size < leastBytes
      const message = this.#isSkipping || isShort ? undefined : readMessage(Buffer.concat(this.#pieces))
      if (message) messages.push(message)
      this.skip()
      this.#isSkipping = false
      at = end + 1
    }
    return messages
  }

  #add(piece: Buffer): void {
    this.#size += piece.length
    if (this.#size > lineBytes) this.skip()
    if (!this.#isSkipping) this.#pieces.push(piece)
  }
}
