// The log of one build, which is sent in pieces. Endless output must not fill the database, so a long log keeps only its
// beginning and end.
const everyMs = 300
/**
 * Maximum number of characters of a log's beginning. Beginning and end together stay below 1 MiB, because control stores no more.
 */
const mostCharacters = 900 * 1024
const endCharacters = 64 * 1024
/** Maximum number of characters in one piece of the log that is sent to control. */
const longestPiece = 32 * 1024

export class BuildLog implements Disposable {
  readonly #tell: (text: string) => void
  #waiting = ''
  #left = mostCharacters
  /** The end of the log. It is used only when the log is longer than `mostCharacters`. */
  #end = ''
  #leftOut = 0
  #timer: NodeJS.Timeout | undefined

  constructor(tell: (text: string) => void) {
    this.#tell = tell
  }

  add(text: string): void {
    if (text === '') return
    const now = text.slice(0, this.#left)
    this.#left -= now.length
    this.#addToEnd(text.slice(now.length))
    if (now === '') return
    this.#waiting += now
    if (this.#waiting.length >= longestPiece) this.#flush()
    else this.#timer ??= setTimeout(() => this.#flush(), everyMs).unref()
  }

  #addToEnd(text: string) {
    this.#end += text
    // `#end` may grow to twice `endCharacters` before it is shortened to `endCharacters`, because each shortening copies the text.
    if (this.#end.length > 2 * endCharacters) this.#shortenEnd()
  }

  #shortenEnd() {
    const surplus = Math.max(0, this.#end.length - endCharacters)
    this.#leftOut += surplus
    this.#end = this.#end.slice(surplus)
  }

  #flush() {
    clearTimeout(this.#timer)
    this.#timer = undefined
    for (let from = 0; from < this.#waiting.length; from += longestPiece)
      this.#tell(this.#waiting.slice(from, from + longestPiece))
    this.#waiting = ''
  }

  /** Sends what was not sent yet and, if the log was too long, the end of the log. */
  [Symbol.dispose]() {
    this.#shortenEnd()
    const gap = this.#leftOut === 0 ? '' : `\n[log truncated: ${this.#leftOut} characters were left out here]\n`
    this.#waiting += `${gap}${this.#end}`
    this.#end = ''
    this.#leftOut = 0
    this.#flush()
  }
}
