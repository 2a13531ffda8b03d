// Reads a tar archive from a sandbox. Nothing in it is trusted: all lengths have limits. unpack.ts writes the entries.
import { BadTar, blockBytes, type Header, isEmptyBlock, readHeader } from './tar-header.ts'

/** Maximum size of an extended header, in bytes. It limits the length of a name too. */
const mostExtendedBytes = 1024 * 1024
/** Maximum number of extended headers before an entry. */
const mostExtended = 16

class Pieces {
  readonly #source: AsyncIterator<Uint8Array>
  #rest: Buffer = Buffer.alloc(0)

  constructor(source: AsyncIterable<Uint8Array>) {
    this.#source = source[Symbol.asyncIterator]()
  }

  /** Returns at least one and at most `most` bytes. Undefined at the end of the archive. */
  async some(most: number): Promise<Buffer | undefined> {
    while (this.#rest.length === 0) {
      const { done, value } = await this.#source.next()
      if (done) return undefined
      this.#rest = Buffer.from(value.buffer, value.byteOffset, value.length)
    }
    const taken = this.#rest.subarray(0, most)
    this.#rest = this.#rest.subarray(taken.length)
    return taken
  }

  /** Returns exactly `length` bytes. Undefined if the archive has fewer bytes left. */
  async exactly(length: number): Promise<Buffer | undefined> {
    const parts: Buffer[] = []
    for (let missing = length; missing > 0; ) {
      const part = await this.some(missing)
      if (part === undefined) {
        if (missing === length) return undefined
        throw new BadTar('it ends too early')
      }
      parts.push(part)
      missing -= part.length
    }
    return Buffer.concat(parts)
  }
}

/** Reads the records `LENGTH NAME=VALUE` of a POSIX extended header. */
const readRecords = (data: Buffer): Map<string, Buffer> => {
  const records = new Map<string, Buffer>()
  for (let at = 0; at < data.length; ) {
    const space = data.indexOf(' ', at)
    const length = Number(data.subarray(at, space).toString('latin1'))
    const equals = data.indexOf('=', space)
    const end = at + length
    if (space < 0 || !Number.isInteger(length) || length <= 0 || end > data.length || equals < 0 || equals >= end)
      throw new BadTar('an extended header is broken')
    records.set(data.subarray(space + 1, equals).toString(), data.subarray(equals + 1, end - 1))
    at = end
  }
  return records
}

const numberIn = (value: Buffer | undefined): number | undefined => {
  if (value === undefined) return undefined
  const number = Number(value.toString())
  if (!Number.isFinite(number)) throw new BadTar('an extended header is broken')
  return number
}

const applied = (header: Header, records: Map<string, Buffer>): Header => {
  const size = numberIn(records.get('size')) ?? header.size
  if (!Number.isSafeInteger(size) || size < 0) throw new BadTar('a size is broken')
  return {
    ...header,
    name: records.get('path') ?? header.name,
    linkName: records.get('linkpath') ?? header.linkName,
    size,
    mtime: numberIn(records.get('mtime')) ?? header.mtime,
  }
}

export type Entry = Header & {
  /** The contents of a file. The caller must read them before it asks for the next entry. */
  contents: AsyncIterable<Buffer>
}

const stripNul = (name: Buffer): Buffer => {
  const end = name.indexOf(0)
  return end < 0 ? name : name.subarray(0, end)
}

export async function* readTar(source: AsyncIterable<Uint8Array>): AsyncGenerator<Entry> {
  const pieces = new Pieces(source)
  let records = new Map<string, Buffer>()
  let extended = 0
  for (;;) {
    const block = await pieces.exactly(blockBytes)
    if (block === undefined) throw new BadTar('it ends too early')
    if (isEmptyBlock(block)) break
    const { flag, ...header } = readHeader(block)
    if ('LKxg'.includes(flag)) {
      extended += 1
      if (header.size > mostExtendedBytes || extended > mostExtended) throw new BadTar('a name is too long')
      const data = await pieces.exactly(header.size + ((blockBytes - (header.size % blockBytes)) % blockBytes))
      if (data === undefined && header.size > 0) throw new BadTar('it ends too early')
      const text = (data ?? Buffer.alloc(0)).subarray(0, header.size)
      if (flag === 'L') records.set('path', stripNul(text))
      else if (flag === 'K') records.set('linkpath', stripNul(text))
      else if (flag === 'x') records = new Map([...records, ...readRecords(text)])
      continue
    }
    const entry = applied(header, records)
    records = new Map()
    extended = 0
    let left = entry.kind === 'file' || entry.kind === 'other' ? entry.size : 0
    const padding = (blockBytes - (left % blockBytes)) % blockBytes
    const contents = {
      async *[Symbol.asyncIterator]() {
        while (left > 0) {
          const piece = await pieces.some(left)
          if (piece === undefined) throw new BadTar('it ends too early')
          left -= piece.length
          yield piece
        }
      },
    }
    yield { ...entry, contents }
    // Skips the contents that the caller did not read.
    for await (const _ of contents);
    if (padding > 0 && (await pieces.exactly(padding)) === undefined) throw new BadTar('it ends too early')
  }
  // Reads what follows the end of the archive, because tar programs write more empty blocks after it.
  while ((await pieces.some(blockBytes)) !== undefined);
}
