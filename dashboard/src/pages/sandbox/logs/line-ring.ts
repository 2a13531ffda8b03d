// Keeps the last lines of a log and drops older lines, so that even an endless log needs bounded memory.
import type { Stream } from './split-streams.ts'

export type LogLine = { number: number; stream: Stream; text: string }

export type RingBounds = { lines: number; characters: number; lineLength: number }

const usual: RingBounds = { lines: 20_000, characters: 8_000_000, lineLength: 4000 }

export class LineRing {
  readonly #bounds: RingBounds
  #lines: LogLine[] = []
  /** Index of the first line that was not dropped. The dropped lines are removed from the array later. */
  #begin = 0
  #characters = 0
  #nextNumber = 1
  #unfinished: Record<Stream, string> = { stdout: '', stderr: '' }

  constructor(bounds: RingBounds = usual) {
    this.#bounds = bounds
  }

  /** How many lines have been dropped. */
  get dropped(): number {
    return this.#nextNumber - 1 - (this.#lines.length - this.#begin)
  }

  push(stream: Stream, text: string): void {
    const parts = `${this.#unfinished[stream]}${text}`.split('\n')
    this.#unfinished[stream] = ''
    const last = parts.pop()!
    for (const part of parts) this.#add(stream, part)
    this.#unfinished[stream] = this.#addLong(stream, last)
  }

  clear(): void {
    this.#lines = []
    this.#begin = 0
    this.#characters = 0
    this.#nextNumber = 1
    this.#unfinished = { stdout: '', stderr: '' }
  }

  /** The finished lines, followed by the unfinished line of each stream. */
  lines(): LogLine[] {
    const unfinished = (['stdout', 'stderr'] as const)
      .filter((stream) => this.#unfinished[stream] !== '')
      .map((stream, at) => ({ number: this.#nextNumber + at, stream, text: this.#unfinished[stream] }))
    return [...this.#lines.slice(this.#begin), ...unfinished]
  }

  #add(stream: Stream, line: string): void {
    const rest = this.#addLong(stream, line.endsWith('\r') ? line.slice(0, -1) : line)
    this.#addLine(stream, rest)
  }

  /** Cuts a text that is too long for one line. Adds all parts but the last as lines, and returns the last part. */
  #addLong(stream: Stream, line: string): string {
    let rest = line
    while (rest.length > this.#bounds.lineLength) {
      this.#addLine(stream, rest.slice(0, this.#bounds.lineLength))
      rest = rest.slice(this.#bounds.lineLength)
    }
    return rest
  }

  #addLine(stream: Stream, text: string): void {
    this.#lines.push({ number: this.#nextNumber++, stream, text })
    this.#characters += text.length
    while (
      this.#lines.length - this.#begin > this.#bounds.lines ||
      (this.#characters > this.#bounds.characters && this.#lines.length - this.#begin > 1)
    ) {
      this.#characters -= this.#lines[this.#begin]!.text.length
      this.#begin += 1
    }
    if (this.#begin <= this.#bounds.lines) return
    this.#lines = this.#lines.slice(this.#begin)
    this.#begin = 0
  }
}
