// What a command prints, kept up to a bound, so that no command can fill the runner's memory.
import { fitIntoJson, wholeCharacters } from '../json-size.ts'

const outputBytes = 16 * 1024 * 1024

/** In JSON an output takes at most so many times its limit: far more than a text does, and a third of what bytes can. */
const inJsonAtMost = 2

/** Each output has so much for sure. */
const sureBytes = 64 * 1024

/**
 * Besides, all that are kept at one time share so many bytes. Of these an owner has no more than it leaves free: nobody takes
 * what others need, and where it is gone further outputs are cut earlier.
 */
const sharedBytes = 512 * 1024 * 1024
let freeBytes = sharedBytes
const heldBy = new Map<string, number>()

/** Answers as many of these as the owner may have. */
const takeShared = (owner: string, wanted: number): number => {
  const held = heldBy.get(owner) ?? 0
  const taken = Math.max(0, Math.min(wanted, Math.floor((freeBytes - held) / 2)))
  freeBytes -= taken
  heldBy.set(owner, held + taken)
  return taken
}

const giveBackShared = (owner: string, bytes: number): void => {
  const held = (heldBy.get(owner) ?? 0) - bytes
  freeBytes += bytes
  if (held > 0) heldBy.set(owner, held)
  else heldBy.delete(owner)
}

const firstBytes = 4096

/** Copies what it is given into one growing block: a million small writes must not stay a million small buffers. */
export class BoundedOutput {
  #block = Buffer.alloc(0)
  #length = 0
  #dropped = 0
  #shared = 0
  /** Whose share it counts for: an organization. */
  readonly owner: string
  readonly #limit: number
  #jsonLeft: number

  constructor(owner: string, limit = outputBytes) {
    this.owner = owner
    this.#limit = limit
    this.#jsonLeft = limit * inJsonAtMost
  }

  get keptBytes() {
    return this.#length
  }

  get droppedBytes() {
    return this.#dropped
  }

  add(data: Uint8Array): void {
    const room = this.#dropped > 0 ? 0 : this.#makeRoom(data.length)
    const { bytes, json } = fitIntoJson(data.subarray(0, room), this.#jsonLeft)
    this.#block.set(data.subarray(0, bytes), this.#length)
    this.#length += bytes
    this.#jsonLeft -= json
    this.#dropped += data.length - bytes
  }

  /** Grows the block for `more` bytes if the bounds allow, and says how many can be taken. */
  #makeRoom(more: number): number {
    const wanted = Math.min(this.#length + more, this.#limit)
    if (wanted > this.#block.length) {
      const size = Math.min(Math.max(wanted, this.#block.length * 2, firstBytes), this.#limit)
      const sure = Math.max(0, Math.min(size, sureBytes) - this.#block.length)
      const shared = takeShared(this.owner, size - this.#block.length - sure)
      this.#shared += shared
      const growth = sure + shared
      if (growth > 0) {
        const larger = Buffer.allocUnsafeSlow(this.#block.length + growth)
        larger.set(this.#block.subarray(0, this.#length))
        this.#block = larger
      }
    }
    return Math.min(more, this.#block.length - this.#length)
  }

  /** A copy of what was kept. */
  bytes(): Buffer {
    return Buffer.from(this.#block.subarray(0, this.#length))
  }

  /** The text, with U+FFFD for what is no UTF-8, and with a last line that says so when something was left out. */
  text(): string {
    const kept = this.#block.subarray(0, this.#length)
    if (this.#dropped === 0) return kept.toString('utf8')
    const whole = kept.subarray(0, wholeCharacters(kept)).toString('utf8')
    return `${whole}\n[output truncated: ${this.#dropped} more bytes were not kept]\n`
  }

  [Symbol.dispose](): void {
    giveBackShared(this.owner, this.#shared)
    this.#shared = 0
    this.#block = Buffer.alloc(0)
    this.#length = 0
  }
}
