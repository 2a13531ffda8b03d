// The log of a program. It has a limited size and two files: one for the newest lines, and one for the lines before
// them.
import { closeSync, existsSync, fstatSync, openSync, renameSync, writeSync } from 'node:fs'

const maxLogBytes = 8 * 1024 * 1024

export class BoundedLog {
  readonly path: string
  #file: number
  #bytes: number
  readonly #maxBytes: number

  /**
   * Opens the log. If the file exists, appends to it, so that the lines about a program's first failure stay when the
   * program is started again.
   */
  constructor(path: string, maxBytes = maxLogBytes) {
    this.path = path
    this.#maxBytes = maxBytes
    this.#file = this.#open()
    this.#bytes = fstatSync(this.#file).size
  }

  #open(): number {
    return openSync(this.path, 'a', 0o600)
  }

  /**
   * Renames the log file to `<path>.1` and opens a new one. The renamed file is closed only when the new one is open.
   * If the new one cannot be opened, the log therefore continues in the renamed file.
   */
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
      // Writing fails if the disk is full or the directory is missing. Drop the line then: the failure must not end
      // `up`, which writes this log.
    }
  }

  close(): void {
    closeSync(this.#file)
  }
}
