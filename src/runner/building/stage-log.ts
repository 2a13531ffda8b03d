// The log of one stage. Stages are built at the same time, so each stage passes on only whole lines, with its name before each
// line.

/** A longer line is split, because a program may print without ever ending its line. */
const longestLine = 2000

export class StageLog {
  readonly #prefix: string
  readonly #tell: (text: string) => void
  #line = ''

  constructor(prefix: string, tell: (text: string) => void) {
    this.#prefix = prefix
    this.#tell = tell
  }

  add(text: string): void {
    const lines = (this.#line + text).split('\n')
    this.#line = lines.pop() ?? ''
    for (const line of lines) this.#say(line)
    while (this.#line.length > longestLine) {
      this.#say(this.#line.slice(0, longestLine))
      this.#line = this.#line.slice(longestLine)
    }
  }

  /** Writes the remaining part of an unfinished line, before the next instruction. */
  end(): void {
    if (this.#line !== '') this.#say(this.#line)
    this.#line = ''
  }

  #say(line: string): void {
    this.#tell(`${this.#prefix}${line}\n`)
  }
}
