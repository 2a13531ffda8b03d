// Cleans a log that an untrusted program wrote: removes escape sequences, and limits the number and length of its lines.
import { shownLine } from '../../ui/shown-text.ts'

const mostLines = 5000
const longestLine = 4000

const cleanLine = (raw: string): string => {
  const line = shownLine(raw)
  return line.length > longestLine ? `${line.slice(0, longestLine)}…` : line
}

/** Collects the pieces of a log. When there are too many lines, it drops the oldest ones. */
export class LogLines {
  /** How many old lines were dropped. */
  dropped = 0
  readonly #lines: string[] = []
  #unfinished = ''

  add(text: string): void {
    const pieces = `${this.#unfinished}${text}`.split('\n')
    // Keeps only the last characters of the unfinished line, because its end may never come.
    this.#unfinished = pieces.pop()!.slice(-4 * longestLine)
    for (const piece of pieces) this.#lines.push(cleanLine(piece))
    const tooMany = this.#lines.length - mostLines
    if (tooMany > 0) {
      this.#lines.splice(0, tooMany)
      this.dropped += tooMany
    }
  }

  get text(): string {
    return [...this.#lines, ...(this.#unfinished === '' ? [] : [cleanLine(this.#unfinished)])].join('\n')
  }
}
