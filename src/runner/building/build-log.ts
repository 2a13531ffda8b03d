// What is said while an image is made, passed on in pieces a few times a second and within a bound: a command that prints
// without end fills nobody's database. Beyond the bound the end is kept too, since that is where a build says why it failed.
const everyMs = 300
/** With the end less than the mebibyte that control keeps. */
const mostCharacters = 900 * 1024
const endCharacters = 64 * 1024
/** Longest piece that is told at a time. */
const longestPiece = 32 * 1024

export class BuildLog implements Disposable {
  readonly #tell: (text: string) => void
  #waiting = ''
  #left = mostCharacters
  /** What came after the bound, as much of its end as may be needed. */
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
    // Not at each piece: most of the copying is saved.
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

  /** Sends the waiting pieces before the next line. */
  [Symbol.dispose]() {
    this.#shortenEnd()
    const gap = this.#leftOut === 0 ? '' : `\n[log truncated: ${this.#leftOut} characters were left out here]\n`
    this.#waiting += `${gap}${this.#end}`
    this.#end = ''
    this.#leftOut = 0
    this.#flush()
  }
}
