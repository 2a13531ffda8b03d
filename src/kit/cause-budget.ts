// Limits how many log lines of one cause (a kind of error or message) a program writes in a minute, so that callers cannot
// fill the log.

const linesPerMinute = 30
const minute = 60_000
/**
 * Maximum number of causes whose log lines are counted separately. The lines of all further causes are counted
 * together, with one limit.
 */
const mostCauses = 500
const mostText = 200

type Fault = { code?: unknown; name?: unknown; message?: unknown; stack?: unknown }

/**
 * Removes the parts of a message that differ each time: words with a digit (ids, addresses, counts) and text in
 * quotation marks.
 */
const withoutValues = (text: string): string =>
  text
    .slice(0, mostText)
    .replace(/"[^"]*"?|“[^”]*”?/g, '…')
    .replace(/\S*\d\S*/g, '…')

/** Returns the line of code where an error was thrown, from the error's stack. */
const placeOf = (stack: unknown): string =>
  typeof stack === 'string' ? (/\n\s+at ([^\n]{1,300})/.exec(stack.slice(0, 8192))?.[1] ?? '') : ''

/** Returns the cause of a log line: its message without ids and numbers, and the name, code and origin of its error. */
export const causeOf = (args: readonly unknown[]): string => {
  const [first, second] = args
  if (typeof first === 'string') return withoutValues(first)
  const fields = (first ?? {}) as { err?: unknown; error?: unknown; cause?: unknown }
  const fault = (first instanceof Error ? first : (fields.err ?? fields.error ?? fields.cause)) as Fault | undefined
  const sentence = typeof second === 'string' ? second : fault?.message
  return [sentence, fault?.name, fault?.code, placeOf(fault?.stack)]
    .map((part, index) => (index === 3 ? part : withoutValues(typeof part === 'string' ? part : '')))
    .join(' ')
    .trim()
}

type Count = { lines: number; tell: (suppressed: number, cause: string) => void }

export class CauseBudget {
  #counts = new Map<string, Count>()
  readonly #most: number
  readonly #afterMinute: (work: () => void) => void
  #isCounting = false

  /**
   * `afterMinute` calls its argument once, a minute later. Tests pass a function of their own, so that they need not
   * wait a minute.
   */
  constructor(most = linesPerMinute, afterMinute = (work: () => void): void => void setTimeout(work, minute).unref()) {
    this.#most = most
    this.#afterMinute = afterMinute
  }

  /**
   * Counts a log line by its cause, and returns whether it may be written. If lines of this cause were not written, `tell`
   * gets their number at the end of the minute.
   */
  take(cause: string, tell: Count['tell']): boolean {
    if (!this.#isCounting) {
      this.#isCounting = true
      this.#afterMinute(() => this.#endMinute())
    }
    const isKnown = this.#counts.has(cause) || this.#counts.size < mostCauses
    const counted = isKnown ? cause : 'others'
    const count = this.#counts.get(counted) ?? { lines: 0, tell }
    this.#counts.set(counted, count)
    count.lines += 1
    return count.lines <= this.#most
  }

  #endMinute() {
    const counts = this.#counts
    this.#counts = new Map()
    this.#isCounting = false
    for (const [cause, { lines, tell }] of counts) if (lines > this.#most) tell(lines - this.#most, cause)
  }
}
