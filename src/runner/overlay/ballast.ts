// The pool is a sparse file: what the host has free below it may become less than what the pool says is free. A write that
// the host has no room for would make the whole pool read-only, for every sandbox. So what the host cannot give is taken out
// of the pool before: a file in it claims that much, without a byte written. Sandboxes then see a full disk, and nothing else.
import { open, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { freeBytes, isBtrfs, isWritable } from '#src/kit/file-system.ts'
import type { Logger } from '#src/kit/log.ts'
import { runCommand } from '#src/kit/run-command.ts'
import { asSize } from '../images/limits.ts'

const MiB = 1024 ** 2
const fileName = 'ballast'
/** It grows and shrinks by whole ones of these, in bytes, but for the last that there is to claim. */
const unit = 64 * MiB
const lookEveryMs = 2_000
const standardKeepFreeBytes = 2 * 1024 * MiB
/**
 * At most this of the pool, in bytes, is not claimed whatever others take of the host: what describes its files must find room,
 * too. Half of what the host has left at most, as some of that is written beside what the pool counts as free.
 */
const mostSpareBytes = 1024 * MiB

/** After the path of a pool: what to do about it. Once nobody holds it, mounting it anew makes it writable again. */
export const readOnlySince =
  'is read-only since an error of the disk below it: restart this machine, or end all sandboxes and Alcove'

export type BallastParts = {
  /** The sparse file, and where it is mounted. */
  image: string
  place: string
  log: Logger
  /** What sandboxes leave of the host's file system; the pool itself needs some of it. */
  keepFreeBytes?: number
}

export class Ballast {
  readonly #parts: Required<BallastParts>
  readonly #file: string
  readonly #timer: NodeJS.Timeout
  #looking: Promise<void> | undefined
  #isReadOnly = false
  #trouble: string | undefined

  constructor(parts: BallastParts) {
    this.#parts = { keepFreeBytes: standardKeepFreeBytes, ...parts }
    this.#file = join(parts.place, fileName)
    this.#timer = setInterval(() => void this.look(), lookEveryMs).unref()
  }

  /** Takes room out of the pool, or gives it back, as the host has less or more. Never throws: the log says what is wrong. */
  look(): Promise<void> {
    this.#looking ??= this.#look()
      .then(() => this.#complain(undefined))
      .catch((err: unknown) => this.#complain(err))
      .finally(() => {
        this.#looking = undefined
      })
    return this.#looking
  }

  /** Once for the same trouble, however often it is met. */
  #complain(err: unknown) {
    const trouble = err === undefined ? undefined : String(err)
    if (trouble !== undefined && trouble !== this.#trouble)
      this.#parts.log.error({ err }, 'what the host has free for the pool cannot be looked after')
    this.#trouble = trouble
  }

  /** Resolves when nothing of it is under way. What it claims stays claimed. */
  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.#looking
  }

  async #look() {
    const { image, place, keepFreeBytes } = this.#parts
    // Where it is not mounted any more, the same file would take the room of the host.
    if (!(await isBtrfs(place)) || !(await this.#isWritable())) return
    const [{ size, blocks }, poolFree, hostFree, held] = await Promise.all([
      stat(image),
      freeBytes(place),
      freeBytes(image),
      stat(this.#file).then(
        (found) => found.size,
        () => 0,
      ),
    ])
    const mayBeWritten = Math.min(poolFree, size - blocks * 512)
    const over = mayBeWritten - (hostFree - keepFreeBytes)
    const spare = Math.min(mostSpareBytes, size / 8, hostFree / 2)
    const more = Math.min(Math.ceil(over / unit) * unit, Math.floor((poolFree - spare) / MiB) * MiB)
    const enough = Math.max(0, Math.ceil((held + over) / unit) * unit)
    if (more > 0) await this.#claim(held, more, hostFree)
    else if (enough < held) await this.#give(enough)
  }

  /** Takes what the file system gives, which may be less than it says is free. */
  async #claim(held: number, more: number, hostFree: number) {
    const text = `the host has ${asSize(hostFree)} free: sandboxes can write less than their disks promise`
    if (held === 0) this.#parts.log.warn({ file: this.#parts.image, bytes: more }, text)
    let bytes = held
    let refusal: unknown
    for (let piece = more; piece >= MiB && bytes < held + more; piece = Math.floor(piece / 2)) {
      try {
        await runCommand(['fallocate', '--length', String(bytes + piece), this.#file])
        bytes += piece
      } catch (error) {
        refusal = error
      }
    }
    if (bytes === held) throw refusal
  }

  async #give(bytes: number) {
    const file = await open(this.#file, 'r+')
    await file.truncate(bytes).finally(() => file.close())
    // Only then does it count as free; before, the next look would give the same once more.
    await runCommand(['sync', '--file-system', this.#parts.place], { timeoutMs: 600_000 })
    if (bytes === 0) this.#parts.log.info('the host has room for all disks of sandboxes again')
  }

  async #isWritable(): Promise<boolean> {
    const { place, log } = this.#parts
    const isReadOnly = !(await isWritable(place))
    if (isReadOnly && !this.#isReadOnly) log.error(`${place} ${readOnlySince}`)
    this.#isReadOnly = isReadOnly
    return !isReadOnly
  }
}
