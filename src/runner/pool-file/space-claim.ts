// The pool is a sparse file, so the host may have less free space than the pool reports. A write for which the host has no space
// would make the whole pool read-only, for every sandbox. So a file inside the pool claims the space that the host lacks, without
// writing a byte. Sandboxes then only see a full disk.
import { open, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { freeBytes, isBtrfs, isWritable } from '#src/kit/file-system.ts'
import type { Logger } from '#src/kit/log.ts'
import { runCommand } from '#src/kit/run-command.ts'

const MiB = 1024 ** 2
const fileName = 'ballast'
/** The claim grows and shrinks in steps of this size, in bytes; only the last step may be smaller. */
const unit = 64 * MiB
const lookEveryMs = 2_000
const standardKeepFreeBytes = 2 * 1024 * MiB
/**
 * Bytes of the pool that are never claimed, because the pool's metadata needs space too. At most half of the host's free space,
 * because some of it is written outside what the pool counts as free.
 */
const mostSpareBytes = 1024 * MiB

/**
 * The end of an error message that begins with the path of the pool. It says what to do: once nothing uses the pool, mounting it
 * again makes it writable.
 */
export const readOnlySince =
  'is read-only since an error of the disk below it: restart this machine, or end all sandboxes and Alcove'

export type SpaceClaimParts = {
  /** Path of the pool's sparse file. `place` is the directory where the file is mounted. */
  image: string
  place: string
  log: Logger
  /** Number of bytes that stay free on the host's file system. The pool itself needs some of them. */
  keepFreeBytes?: number
  /** The consequence of a full host, as a part of log lines. */
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

  /** Claims more of the pool's space, or less, as the host's free space changes. Never throws; errors are logged. */
  look(): Promise<void> {
    this.#looking ??= this.#look()
      .then(() => this.#complain(undefined))
      .catch((err: unknown) => this.#complain(err))
      .finally(() => {
        this.#looking = undefined
      })
    return this.#looking
  }

  /** Logs each error once, however often it is repeated. */
  #complain(err: unknown) {
    const trouble = err === undefined ? undefined : String(err)
    if (trouble !== undefined && trouble !== this.#trouble)
      this.#parts.log.error({ err }, 'what the host has free for the pool cannot be looked after')
    this.#trouble = trouble
  }

  /** Resolves when no check is under way. Claimed space stays claimed. */
  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.#looking
  }

  async #look() {
    const { image, place, keepFreeBytes } = this.#parts
    // If the pool is no longer mounted at this path, the claiming file would take the host's own space.
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

  /** Makes the claiming file larger. The file system may give less space than it reports as free. */
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
    // The space counts as free only after a sync. Without it the next check would release the same amount again.
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
