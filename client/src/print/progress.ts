// Shows progress on standard error. Nothing is shown if standard error is not a terminal.
import cliProgress from 'cli-progress'
import { cleanLine } from '../clean.ts'

const drawMs = 120
const frames = ['|', '/', '-', '\\']

/** Shows the name of the work and the seconds that have passed, in one line. For work whose duration is not known. */
export class Activity implements Disposable {
  readonly #began = Date.now()
  #text: string
  #timer: NodeJS.Timeout | undefined
  #frame = 0

  constructor(text: string) {
    this.#text = text
    if (process.stderr.isTTY) this.#timer = setInterval(() => this.#draw(), drawMs).unref()
  }

  say(text: string): void {
    this.#text = text
  }

  #draw(): void {
    this.#frame = (this.#frame + 1) % frames.length
    const seconds = Math.floor((Date.now() - this.#began) / 1000)
    const line = `${frames[this.#frame]} ${this.#text}${seconds < 2 ? '' : ` (${seconds} s)`}`
    process.stderr.write(`\r\x1b[2K${line.slice(0, Math.max(10, (process.stderr.columns || 80) - 1))}`)
  }

  [Symbol.dispose](): void {
    if (this.#timer === undefined) return
    clearInterval(this.#timer)
    this.#timer = undefined
    if (this.#frame !== 0) process.stderr.write('\r\x1b[2K')
  }
}

const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB']

/** Returns a number of bytes as text, such as `3.1 MiB`. */
export const asSize = (bytes: number): string => {
  const power = Math.min(Math.floor(Math.log2(Math.max(bytes, 1)) / 10), units.length - 1)
  return `${(bytes / 1024 ** power).toFixed(power === 0 ? 0 : 1)} ${units[power]}`
}

/** Shows how many bytes were copied: as a bar if the total is known, otherwise as a number. */
export class CopyProgress implements Disposable {
  readonly #bar: cliProgress.SingleBar | undefined
  readonly #activity: Activity | undefined
  readonly #name: string
  #bytes = 0

  constructor(name: string, total: number | undefined) {
    this.#name = cleanLine(name)
    if (!process.stderr.isTTY) return
    if (total === undefined) this.#activity = new Activity(this.#name)
    else {
      this.#bar = new cliProgress.SingleBar({
        format: '{name} [{bar}] {percentage}% {done} of {size}',
        stream: process.stderr,
        clearOnComplete: true,
        hideCursor: false,
        etaBuffer: 50,
      })
      this.#bar.start(Math.max(total, 1), 0, { name: this.#name, done: asSize(0), size: asSize(total) })
    }
  }

  add(bytes: number): void {
    this.#bytes += bytes
    this.#bar?.update(this.#bytes, { done: asSize(this.#bytes) })
    this.#activity?.say(`${this.#name}: ${asSize(this.#bytes)}`)
  }

  [Symbol.dispose](): void {
    this.#bar?.stop()
    this.#activity?.[Symbol.dispose]()
  }
}
