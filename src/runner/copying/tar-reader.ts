// Reads the entries of a tar stream (POSIX pax, and GNU tar's additions). The tar may be hostile, so nothing is written to this
// host's file system.
//
// Names are sequences of bytes, represented by one character per byte.
import type { EventLoopTurns } from '#src/kit/yield.ts'
import { ImageFailed } from '../images/image-failed.ts'

export type TarEntry = {
  type: 'file' | 'directory' | 'link' | 'hard link'
  path: string
  target: string
  mode: number
  uid: number
  gid: number
  modifiedSeconds: number
  size: number
}

/** An entry and its contents. When the next entry is requested, contents that were not read are skipped. */
type Unpacking = { entry: TarEntry; contents: AsyncIterable<Buffer> }

const blockBytes = 512
/** Maximum size in bytes of all extended headers before an entry. Even an empty header counts, because reading it takes time. */
const largestExtension = 1024 * 1024

export const damagedTar = (why: string) => new ImageFailed('corrupted', `The files cannot be unpacked: ${why}.`)

/** Reads bytes from pieces of any size. */
class Source {
  readonly #pieces: AsyncIterator<Buffer>
  #held: Buffer = Buffer.alloc(0)

  constructor(pieces: AsyncIterable<Buffer>) {
    this.#pieces = pieces[Symbol.asyncIterator]()
  }

  /** Reads between one and `most` bytes. Undefined at the end of the stream. */
  async some(most: number): Promise<Buffer | undefined> {
    while (this.#held.length === 0) {
      const { done, value } = await this.#pieces.next()
      if (done) return undefined
      this.#held = value
    }
    const taken = this.#held.subarray(0, most)
    this.#held = this.#held.subarray(taken.length)
    return taken
  }

  /**
   * Reads exactly `size` bytes. Undefined if no byte is left in the stream. Throws if some bytes are left, but fewer than `size`.
   */
  async whole(size: number): Promise<Buffer | undefined> {
    const parts: Buffer[] = []
    for (let left = size; left > 0; ) {
      const part = await this.some(left)
      if (part === undefined) {
        if (left < size) throw damagedTar('the tar is cut off')
        return undefined
      }
      parts.push(part)
      left -= part.length
    }
    return parts.length === 1 ? parts[0] : Buffer.concat(parts)
  }

  async close() {
    await this.#pieces.return?.()
  }
}

const textIn = (block: Buffer, at: number, length: number): string => {
  const field = block.subarray(at, at + length)
  const end = field.indexOf(0)
  return field.toString('latin1', 0, end < 0 ? length : end)
}

/** Reads a number from a header: octal text or, if its first byte is 0x80, GNU's binary form for large numbers. */
const numberIn = (block: Buffer, at: number, length: number): number => {
  if (block[at] === 0x80) {
    const value = block.subarray(at + 1, at + length).reduce((sum, byte) => sum * 256 + byte, 0)
    if (Number.isSafeInteger(value)) return value
  } else {
    const text = textIn(block, at, length).trim()
    if (/^[0-7]*$/.test(text)) return Number.parseInt(text || '0', 8)
  }
  throw damagedTar('a number in a header is not valid')
}

const checksumOf = (block: Buffer): number =>
  block.reduce((sum, byte, at) => sum + (at >= 148 && at < 156 ? 0x20 : byte), 0)

const fieldsRead = new Set(['path', 'linkpath', 'size', 'uid', 'gid', 'mtime'])
/** Prefix of the pax fields that describe a sparse file. A file with such a field is refused. */
const sparseFields = 'GNU.sparse.'

/** Reads the fields of a pax header, which have the form `length name=value`. A hostile tar may have very many of them. */
const readPax = async (content: Buffer, into: Map<string, string>, turns: EventLoopTurns): Promise<void> => {
  for (let at = 0; at < content.length; ) {
    await turns.next()
    const space = content.indexOf(0x20, at)
    const length = Number(content.toString('latin1', at, space < 0 ? at : space))
    const line = content.toString('latin1', space + 1, at + length - 1)
    const [, name, value = ''] = /^([^=]+)=(.*)$/s.exec(line) ?? []
    if (!Number.isSafeInteger(length) || length < 5 || at + length > content.length || name === undefined)
      throw damagedTar('a header cannot be read')
    if (fieldsRead.has(name)) into.set(name, value)
    else if (name.startsWith(sparseFields)) into.set(sparseFields, '')
    at += length
  }
}

const types: Record<string, TarEntry['type']> = {
  '0': 'file',
  '\0': 'file',
  '7': 'file',
  '1': 'hard link',
  '2': 'link',
  '5': 'directory',
}
const refusedTypes: Record<string, string> = { '3': 'a device', '4': 'a device', '6': 'a fifo', S: 'a sparse file' }

const entryOf = (block: Buffer, more: ReadonlyMap<string, string>): TarEntry => {
  const flag = textIn(block, 156, 1) || '\0'
  const prefix = textIn(block, 257, 6) === 'ustar' ? textIn(block, 345, 155) : ''
  const name = textIn(block, 0, 100)
  const path = more.get('path') ?? (prefix === '' ? name : `${prefix}/${name}`)
  const type = types[flag]
  const isSparse = more.has(sparseFields)
  if (type === undefined || isSparse) {
    const what = isSparse ? 'a sparse file' : (refusedTypes[flag] ?? 'of an unknown type')
    throw damagedTar(`"${path.slice(-100)}" is ${what}; only files, directories and links can be copied`)
  }
  const said = (field: string, at: number, length: number) => {
    const value = more.get(field)
    const number = value === undefined ? numberIn(block, at, length) : Math.floor(Number(value))
    if (!Number.isSafeInteger(number)) throw damagedTar('a number in a header is not valid')
    return number
  }
  const isDirectory = type === 'directory' || (type === 'file' && path.endsWith('/'))
  const size = said('size', 124, 12)
  if (size < 0) throw damagedTar('a number in a header is not valid')
  return {
    type: isDirectory ? 'directory' : type,
    path,
    target: more.get('linkpath') ?? textIn(block, 157, 100),
    mode: numberIn(block, 100, 8) & 0o7777,
    uid: said('uid', 108, 8),
    gid: said('gid', 116, 8),
    modifiedSeconds: said('mtime', 136, 12),
    size: type === 'file' ? size : 0,
  }
}

export async function* readTar(pieces: AsyncIterable<Buffer>, turns: EventLoopTurns): AsyncGenerator<Unpacking> {
  const source = new Source(pieces)
  const pass = async (bytes: number) => {
    for (let left = bytes; left > 0; ) {
      const part = await source.some(left)
      if (part === undefined) throw damagedTar('the tar is cut off')
      left -= part.length
    }
  }
  const paddingOf = (bytes: number) => (blockBytes - (bytes % blockBytes)) % blockBytes
  /** Fields of the extended headers that describe the next entry. */
  const more = new Map<string, string>()
  let moreBytes = 0
  try {
    for (;;) {
      await turns.next()
      const block = await source.whole(blockBytes)
      if (block === undefined) {
        if (more.size > 0) throw damagedTar('the tar is cut off')
        return
      }
      // A block of zeros ends the tar. Everything after it is read and ignored, so that the sender can finish.
      if (block.every((byte) => byte === 0)) {
        while ((await source.some(largestExtension)) !== undefined);
        return
      }
      if (checksumOf(block) !== numberIn(block, 148, 8))
        throw damagedTar('they are not a tar archive, or a header is damaged')
      const flag = textIn(block, 156, 1)
      if (['x', 'g', 'L', 'K'].includes(flag)) {
        const size = numberIn(block, 124, 12)
        moreBytes += blockBytes + size
        if (moreBytes > largestExtension) throw damagedTar('a header is too long')
        // Skip a header of type `g`, which describes all later entries.
        if (flag === 'g') {
          await pass(size + paddingOf(size))
          continue
        }
        const content = (await source.whole(size)) ?? Buffer.alloc(0)
        if (content.length < size) throw damagedTar('the tar is cut off')
        await pass(paddingOf(size))
        if (flag === 'x') await readPax(content, more, turns)
        else more.set(flag === 'L' ? 'path' : 'linkpath', textIn(content, 0, content.length))
        continue
      }
      const entry = entryOf(block, more)
      more.clear()
      moreBytes = 0
      const { size } = entry
      let left = size
      const contents = (async function* () {
        while (left > 0) {
          const part = await source.some(left)
          if (part === undefined) throw damagedTar('the tar is cut off')
          left -= part.length
          yield part
        }
      })()
      yield { entry, contents }
      await pass(left + paddingOf(size))
    }
  } finally {
    await source.close()
  }
}
