// The log of one stage of a build. Stages are built at the same time, so only complete lines are sent, each after its stage's name.

/** A longer line is split into several, because the output of a program may contain no line break. */
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

  /** Sends the last line of the output even without a line break. Must be called before the next line of the definition runs. */
  end(): void {
    if (this.#line !== '') this.#say(this.#line)
    this.#line = ''
  }

  #say(line: string): void {
    this.#tell(`${this.#prefix}${line}\n`)
  }
}
