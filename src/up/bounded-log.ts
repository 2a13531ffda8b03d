// A program's log: one file of bounded size and the one before it.
import { closeSync, existsSync, fstatSync, openSync, renameSync, writeSync } from 'node:fs'

const maxLogBytes = 8 * 1024 * 1024

export class BoundedLog {
  readonly path: string
  #file: number
  #bytes: number
  readonly #maxBytes: number

  /** Goes on in the file that is there: an operator who starts again and again still has the log of what went wrong. */
  constructor(path: string, maxBytes = maxLogBytes) {
    this.path = path
    this.#maxBytes = maxBytes
    this.#file = this.#open()
    this.#bytes = fstatSync(this.#file).size
  }

  #open(): number {
    return openSync(this.path, 'a', 0o600)
  }

  /** What was there becomes `<path>.1`. The old file is let go of only once there is a new one. */
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
      // A full disk must not end the supervisor, nor a directory that is gone; the line is lost.
    }
  }

  close(): void {
    closeSync(this.#file)
  }
}
