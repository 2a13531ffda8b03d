// What is said while an image is made, passed on in pieces a few times a second and within a bound: a command that prints
// without end fills nobody's database.
const everyMs = 300
const mostCharacters = 1000 * 1024
/** Of one piece. */
const longestPiece = 32 * 1024
const cut = '\n[The rest is left out.]\n'

export class BuildLog implements Disposable {
  readonly #tell: (text: string) => void
  #waiting = ''
  #left = mostCharacters
  #isCut = false
  #timer: NodeJS.Timeout | undefined

  constructor(tell: (text: string) => void) {
    this.#tell = tell
  }

  add(text: string): void {
    if (text === '' || this.#isCut) return
    this.#isCut = text.length > this.#left
    this.#waiting += this.#isCut ? `${text.slice(0, this.#left)}${cut}` : text
    this.#left -= text.length
    if (this.#waiting.length >= longestPiece) this.#flush()
    else this.#timer ??= setTimeout(() => this.#flush(), everyMs).unref()
  }

  #flush() {
    clearTimeout(this.#timer)
    this.#timer = undefined
    for (let from = 0; from < this.#waiting.length; from += longestPiece)
      this.#tell(this.#waiting.slice(from, from + longestPiece))
    this.#waiting = ''
  }

  /** What still waits is told before whatever is said next. */
  [Symbol.dispose]() {
    this.#flush()
  }
}
