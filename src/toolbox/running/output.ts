// Bounded output of a command: only its beginning and its end are stored, so that no command fills the gate's memory.

import { Budget } from '#src/kit/budget.ts'
import { brokenCharacter, endThatFitsIntoJson, fitIntoJson, wholeCharacters } from '#src/kit/json-size.ts'
import { RingBuffer } from '#src/kit/ring-buffer.ts'

const outputBytes = 16 * 1024 * 1024

/**
 * An output's JSON text may be this many times as long as the output's limit. A longer text is cut. JSON needs up to 6 bytes for
 * one byte of the output.
 */
const inJsonAtMost = 2

/** An output of at most this size, in bytes, is never cut, however much memory the other outputs use. */
const sureBytes = 64 * 1024

/**
 * Memory for outputs beyond `sureBytes`: 512 MiB, which all owners share. An owner can take memory until it holds as much as is
 * still free. So a single owner gets half of the memory: 256 MiB.
 */
const shared = new Budget({ all: 512 * 1024 * 1024, ofFree: 1 })

const firstBytes = 4096

/** Part of an output's limit that is reserved for the end of the output. */
const endPart = 1 / 16
const sureEndBytes = sureBytes / 4

/**
 * Stores the beginning and the end of a command's output, up to a limit. Pieces are copied into one large buffer, because a million
 * small buffers would need far more memory.
 */
export class BoundedOutput {
  /** The beginning of the output, in one growing block. */
  #block = Buffer.alloc(0)
  #length = 0
  /** The end of the output. Created when `#block` with the beginning is full. */
  #end: RingBuffer | undefined
  #shared = 0
  /** The organization whose share of the memory this output uses. */
  readonly owner: string
  readonly #limit: number
  readonly #endLimit: number
  #jsonLeft: number

  constructor(owner: string, limit = outputBytes) {
    this.owner = owner
    this.#endLimit = Math.ceil(limit * endPart)
    this.#limit = limit - this.#endLimit
    this.#jsonLeft = this.#limit * inJsonAtMost
  }

  get keptBytes() {
    return this.#length + this.#endBytes().length
  }

  get droppedBytes() {
    return (this.#end?.totalBytes ?? 0) - this.#endBytes().length
  }

  add(data: Uint8Array): void {
    if (this.#end !== undefined) {
      this.#end.add(data)
      return
    }
    const room = this.#makeRoom(data.length)
    const { bytes, json } = fitIntoJson(data.subarray(0, room), this.#jsonLeft)
    this.#block.set(data.subarray(0, bytes), this.#length)
    this.#length += bytes
    this.#jsonLeft -= json
    if (bytes === data.length) return
    const sure = Math.min(this.#endLimit, sureEndBytes)
    this.#end = new RingBuffer(sure + this.#takeShared(this.#endLimit - sure))
    this.#end.add(data.subarray(bytes))
  }

  /**
   * Drops the bytes of an incomplete character at the end of the stored text. Call this if the next piece of the output is missing.
   */
  dropCutCharacter(): void {
    if (this.#end === undefined) this.#length = wholeCharacters(this.#block.subarray(0, this.#length))
  }

  #takeShared(bytes: number): number {
    const taken = shared.takeUpTo(this.owner, bytes)
    this.#shared += taken
    return taken
  }

  /**
   * Enlarges `#block` for `more` further bytes, as far as the limits allow. Returns how many further bytes fit into `#block`.
   */
  #makeRoom(more: number): number {
    const wanted = Math.min(this.#length + more, this.#limit)
    if (wanted > this.#block.length) {
      const size = Math.min(Math.max(wanted, this.#block.length * 2, firstBytes), this.#limit)
      const sure = Math.max(0, Math.min(size, sureBytes - sureEndBytes) - this.#block.length)
      const growth = sure + this.#takeShared(size - this.#block.length - sure)
      if (growth > 0) {
        const larger = Buffer.allocUnsafeSlow(this.#block.length + growth)
        larger.set(this.#block.subarray(0, this.#length))
        this.#block = larger
      }
    }
    return Math.min(more, this.#block.length - this.#length)
  }

  #endBytes(): Buffer {
    const kept = this.#end?.bytes() ?? Buffer.alloc(0)
    return kept.subarray(kept.length - endThatFitsIntoJson(kept, this.#endLimit * inJsonAtMost))
  }

  /** A copy of the stored bytes. */
  bytes(): Buffer {
    return Buffer.concat([this.#block.subarray(0, this.#length), this.#endBytes()])
  }

  /** The stored text, with U+FFFD for invalid UTF-8, and a line in place of the missing part. */
  text(): string {
    const begin = this.#block.subarray(0, this.#length)
    if (this.#end === undefined) return begin.toString('utf8')
    const end = this.#endBytes()
    const dropped = this.#end.totalBytes - end.length
    if (dropped === 0) return Buffer.concat([begin, end]).toString('utf8')
    const before = begin.subarray(0, wholeCharacters(begin)).toString('utf8')
    return `${before}\n[output truncated: ${dropped} bytes were left out here]\n${end.subarray(brokenCharacter(end)).toString('utf8')}`
  }

  [Symbol.dispose](): void {
    shared.give(this.owner, this.#shared)
    this.#shared = 0
    this.#block = Buffer.alloc(0)
    this.#length = 0
    this.#end = undefined
  }
}
