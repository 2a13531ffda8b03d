// A program's log of limited size, in two files: one file has the newest lines, the other file older lines.
import { closeSync, existsSync, fstatSync, openSync, renameSync, writeSync } from 'node:fs'

const maxLogBytes = 8 * 1024 * 1024

export class BoundedLog {
  readonly path: string
  #file: number
  #bytes: number
  readonly #maxBytes: number

  /** Opens the log. Keeps the lines of an existing file, because they may explain why the program had to start again. */
  constructor(path: string, maxBytes = maxLogBytes) {
    this.path = path
    this.#maxBytes = maxBytes
    this.#file = this.#open()
    this.#bytes = fstatSync(this.#file).size
  }

  #open(): number {
    return openSync(this.path, 'a', 0o600)
  }

  /** Renames the log file to `<path>.1` and opens a new file. If the opening fails, the log continues in the renamed file. */
  #rotate() {
    const old = this.#file
    if (existsSync(this.path)) renameSync(this.path, `${this.path}.1`)
    this.#file = this.#open()
    this.#bytes = 0
    closeSync(old)
  }

  write(chunk: string | Uint8Array): void {
    const bytes = typeof chunk === 'string' ? Buffer.from(chunk) : chunk
    try {
      if (this.#bytes > 0 && this.#bytes + bytes.length > this.#maxBytes) this.#rotate()
      this.#bytes += writeSync(this.#file, bytes)
    } catch {
      // The disk is full or the log's directory is missing. Drop the line, because a failure to log must not end `up`.
    }
  }

  close(): void {
    closeSync(this.#file)
  }
}
