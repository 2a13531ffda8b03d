// Computes from a program's output what a person would see on a terminal. Supports only the escape sequences of xterm (ECMA-48)
// that the tested programs use. Any other sequence fails the test, because the computed screen would be wrong.
import assert from 'node:assert/strict'

/** Matches ESC and then a CSI sequence, a whole OSC or DCS text, the choice of a character set, or any other single letter. */
const sequence = /^\x1b(?:\[([<=>?]?)([\d;:]*)([ -/]*)([@-~])|[\]P][^\x07\x1b]*(?:\x07|\x1b\\)|[()*+#%].|[^[\]P()*+#%])/
/** Last letters of the sequences that change no text on the screen: modes, colors, queries and cursor shapes. */
const unseen = new Set('mhlnctqpuxy')

export class DrawnScreen {
  readonly cols: number
  readonly rows: number
  #cells: string[][]
  #row = 0
  #col = 0
  #saved: [number, number] = [0, 0]
  #rest = ''
  readonly #decoder = new TextDecoder()

  constructor(cols: number, rows: number) {
    this.cols = cols
    this.rows = rows
    this.#cells = Array.from({ length: rows }, () => this.#blank())
  }

  /** The lines of the screen without trailing blanks. */
  get lines(): string[] {
    return this.#cells.map((cells) => cells.join('').trimEnd())
  }

  readonly take = (data: Uint8Array): void => {
    let text = this.#rest + this.#decoder.decode(data, { stream: true })
    while (text !== '') {
      if (text[0] === '\x1b') {
        const [whole, mark, given, , final] = sequence.exec(text) ?? []
        if (whole === undefined) break
        if (final !== undefined) this.#control(mark ?? '', given ?? '', final)
        else this.#single(whole)
        text = text.slice(whole.length)
      } else {
        const [character = ''] = text
        this.#put(character)
        text = text.slice(character.length)
      }
    }
    this.#rest = text
  }

  #blank = (): string[] => Array.from({ length: this.cols }, () => ' ')

  #put(character: string): void {
    if (character === '\r') this.#col = 0
    else if (character === '\n') this.#down()
    else if (character === '\b') this.#col = Math.max(0, Math.min(this.#col, this.cols - 1) - 1)
    else if (character === '\t') this.#col = Math.min(this.cols - 1, (this.#col | 7) + 1)
    else if (character >= ' ' && character !== '\x7f') {
      if (this.#col >= this.cols) {
        this.#col = 0
        this.#down()
      }
      this.#cells[this.#row]![this.#col++] = character
    }
  }

  #down(): void {
    if (this.#row < this.rows - 1) this.#row += 1
    else this.#cells = [...this.#cells.slice(1), this.#blank()]
  }

  #goTo(row: number, col: number): void {
    this.#row = Math.max(0, Math.min(this.rows - 1, row))
    this.#col = Math.max(0, Math.min(this.cols - 1, col))
  }

  #single(letter: string): void {
    if (letter === '\x1b7') this.#saved = [this.#row, this.#col]
    else if (letter === '\x1b8') this.#goTo(...this.#saved)
    else assert.ok(!/^\x1b[DEM]$/.test(letter), `${JSON.stringify(letter)} scrolls`)
  }

  #control(mark: string, given: string, final: string): void {
    if (mark !== '' || unseen.has(final)) return
    const [one = 0, two = 0] = given.split(/[;:]/).map(Number)
    const count = Math.max(1, one)
    if (final === 'H' || final === 'f') this.#goTo(count - 1, Math.max(1, two) - 1)
    else if (final === 'A') this.#goTo(this.#row - count, this.#col)
    else if (final === 'B') this.#goTo(this.#row + count, this.#col)
    else if (final === 'C') this.#goTo(this.#row, this.#col + count)
    else if (final === 'D') this.#goTo(this.#row, this.#col - count)
    else if (final === 'G') this.#goTo(this.#row, count - 1)
    else if (final === 'd') this.#goTo(count - 1, this.#col)
    else if (final === 'K') this.#eraseLine(one)
    else if (final === 'J') this.#eraseScreen(one)
    else if (final === 'r') this.#goTo(0, 0)
    else assert.fail(`CSI ${given} ${final} is not known here`)
  }

  #eraseLine(what: number): void {
    const [from, to] = what === 0 ? [this.#col, this.cols] : what === 1 ? [0, this.#col + 1] : [0, this.cols]
    this.#cells[this.#row]!.fill(' ', from, to)
  }

  #eraseScreen(what: number): void {
    if (what !== 2) this.#eraseLine(what)
    const [from, to] = what === 0 ? [this.#row + 1, this.rows] : what === 1 ? [0, this.#row] : [0, this.rows]
    for (let row = from; row < to; row++) this.#cells[row]!.fill(' ')
  }
}
