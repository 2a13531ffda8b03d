// The log of a program: a file of limited size, and one older file.
import { closeSync, existsSync, fstatSync, openSync, renameSync, writeSync } from 'node:fs'

const maxLogBytes = 8 * 1024 * 1024

export class BoundedLog {
  readonly path: string
  #file: number
  #bytes: number
  readonly #maxBytes: number

  /** Opens the log. Appends to an existing file, so that repeated starts do not lose the log of the first failure. */
  constructor(path: string, maxBytes = maxLogBytes) {
    this.path = path
    this.#maxBytes = maxBytes
    this.#file = this.#open()
    this.#bytes = fstatSync(this.#file).size
  }

  #open(): number {
    return openSync(this.path, 'a', 0o600)
  }

  /** Renames the log file to `<path>.1` and opens a new one. The old file is closed only after the new one is open. */
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
      // A full disk or a missing directory must not end the supervisor, so errors are ignored. The log line is lost.
    }
  }

  close(): void {
    closeSync(this.#file)
  }
}
