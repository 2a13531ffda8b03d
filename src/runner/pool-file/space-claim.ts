// The pool is a sparse file, so it may report more free space than the host has. A write for which the host has no space would make
// the whole pool read-only. Therefore the ballast, a file without data in the pool, takes the space that the host does not have.
import { open, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { freeBytes, isBtrfs, isWritable } from '#src/kit/file-system.ts'
import type { Logger } from '#src/kit/log.ts'
import { runCommand } from '#src/kit/run-command.ts'

const MiB = 1024 ** 2
const fileName = 'ballast'
/** The ballast grows and shrinks in steps of this many bytes. A step is smaller if the pool has less free space. */
const unit = 64 * MiB
const lookEveryMs = 2_000
const standardKeepFreeBytes = 2 * 1024 * MiB
/**
 * The ballast leaves at most this many bytes of the pool free, for metadata of btrfs. It never leaves more than half of the host's
 * free bytes, because metadata may take more bytes on the host than in the pool.
 */
const mostSpareBytes = 1024 * MiB

/**
 * End of an error message that begins with the pool's path. The pool becomes writable again if it is mounted anew, when no process
 * uses it any more.
 */
export const readOnlySince =
  'is read-only since an error of the disk below it: restart this machine, or end all sandboxes and Alcove'

export type SpaceClaimParts = {
  /** Path of the pool's sparse file. `place`: the directory on which the pool is mounted. */
  image: string
  place: string
  log: Logger
  /**
   * The pool must be full when the host has this many bytes free. After that, only the pool's metadata may grow into these bytes.
   * Default: 2 GiB.
   */
  keepFreeBytes?: number
  /** End of the runner's warning that the host's disk is nearly full. This text says what users will notice. */
  consequence?: string
}

export class SpaceClaim {
  readonly #parts: Required<SpaceClaimParts>
  readonly #file: string
  readonly #timer: NodeJS.Timeout
  #looking: Promise<void> | undefined
  #isReadOnly = false
  #trouble: string | undefined

  constructor(parts: SpaceClaimParts) {
    const consequence = 'sandboxes can write less than their disks promise'
    this.#parts = { keepFreeBytes: standardKeepFreeBytes, consequence, ...parts }
    this.#file = join(parts.place, fileName)
    this.#timer = setInterval(() => void this.look(), lookEveryMs).unref()
  }

  /** Grows or shrinks the ballast so that the pool is full before the host is. Never throws: errors are logged. */
  look(): Promise<void> {
    this.#looking ??= this.#look()
      .then(() => this.#complain(undefined))
      .catch((err: unknown) => this.#complain(err))
      .finally(() => {
        this.#looking = undefined
      })
    return this.#looking
  }

  /** Logs an error, unless the previous check logged the same error. */
  #complain(err: unknown) {
    const trouble = err === undefined ? undefined : String(err)
    if (trouble !== undefined && trouble !== this.#trouble)
      this.#parts.log.error({ err }, 'what the host has free for the pool cannot be looked after')
    this.#trouble = trouble
  }

  /** Stops the checks. Resolves when no check is running. The ballast keeps its size. */
  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.#looking
  }

  async #look() {
    const { image, place, keepFreeBytes } = this.#parts
    // Do nothing if the pool is not mounted: the ballast would then be made on the host's own file system.
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

  /** Enlarges the ballast by at most `more` bytes, in smaller pieces if the file system cannot allocate so many bytes at once. */
  async #claim(held: number, more: number, hostFree: number) {
    const text = `the host has ${Math.round(hostFree / MiB)} MiB free: ${this.#parts.consequence}`
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
    // Without a sync, the pool does not count the freed space yet. The next check would then shrink the ballast a second time.
    await runCommand(['sync', '--file-system', this.#parts.place], { timeoutMs: 600_000 })
    if (bytes === 0) this.#parts.log.info({ file: this.#parts.image }, 'the host has room for all of the file again')
  }

  async #isWritable(): Promise<boolean> {
    const { place, log } = this.#parts
    const isReadOnly = !(await isWritable(place))
    if (isReadOnly && !this.#isReadOnly) log.error(`${place} ${readOnlySince}`)
    this.#isReadOnly = isReadOnly
    return !isReadOnly
  }
}
