// Reads a multipart body (RFC 2046 §5.1, RFC 7578) as a stream, part by part. It reads a chunk only when the consumer requests
// more, and reuses the chunk's memory for the next chunk.
import { Problem } from '#src/problems.ts'

const headerBytes = 16 * 1024
const boundaryLength = 200
const noBytes = Buffer.alloc(0)
const carriageReturn = 13

export type Part = {
  name: string
  /** The part's contents. Read them before you request the next part: unread contents are skipped. */
  contents: AsyncIterable<Buffer>
}

/** Returns the boundary of a multipart form; `undefined` for any other content type. */
export const boundaryOf = (contentType: string | undefined): string | undefined => {
  if (!/^multipart\/form-data(?:;|$)/i.test(contentType?.trim() ?? '')) return undefined
  const [, quoted, plain] = /;\s*boundary=(?:"([^"]+)"|([^\s;"]+))/i.exec(contentType!) ?? []
  const boundary = quoted ?? plain
  if (boundary === undefined || boundary.length > boundaryLength) {
    throw new Problem('bad_request', 'The multipart body has no valid boundary.')
  }
  return boundary
}

const nameOf = (header: Buffer): string => {
  const disposition = /^content-disposition:\s*form-data(?=\s*;)(.*)$/im.exec(header.toString('utf8'))?.[1]
  const [, quoted, plain] = /;\s*name=(?:"((?:[^"\\]|\\.)*)"|([^\s;"]+))/i.exec(disposition ?? '') ?? []
  return quoted?.replace(/\\(.)/g, '$1') ?? plain ?? ''
}

class PartReader {
  readonly #chunks: AsyncIterator<Buffer>
  readonly #delimiter: Buffer
  // Every delimiter begins with a line break, except perhaps the first. A line break before the body makes the first like the
  // others.
  #held: Buffer = Buffer.from('\r\n')
  #isInContents = true

  constructor(body: AsyncIterable<Buffer>, boundary: string) {
    this.#chunks = body[Symbol.asyncIterator]()
    this.#delimiter = Buffer.from(`\r\n--${boundary}`, 'latin1')
  }

  async #more(): Promise<void> {
    const held = Buffer.from(this.#held)
    const { done, value } = await this.#chunks.next()
    if (done) throw new Problem('bad_request', 'The multipart body ends in the middle.')
    this.#held = held.length === 0 ? value : Buffer.concat([held, value])
  }

  /** Returns how many bytes at the end of `#held` may be the start of a delimiter that continues in the next chunk. */
  #doubtfulBytes(): number {
    for (let size = Math.min(this.#held.length, this.#delimiter.length - 1); size > 0; size--) {
      const end = this.#held.subarray(-size)
      if (end[0] === carriageReturn && this.#delimiter.subarray(0, size).equals(end)) return size
    }
    return 0
  }

  /** Yields the contents of the current part that were not read yet. */
  async *contents(): AsyncGenerator<Buffer, void, void> {
    while (this.#isInContents) {
      const at = this.#held.indexOf(this.#delimiter)
      const size = at < 0 ? this.#held.length - this.#doubtfulBytes() : at
      const piece = this.#held.subarray(0, size)
      if (at >= 0) {
        this.#isInContents = false
        this.#held = this.#held.subarray(at + this.#delimiter.length)
      } else this.#held = this.#held.subarray(size)
      if (piece.length > 0) yield piece
      if (at < 0) await this.#more()
    }
  }

  /** Returns the header of the next part; `undefined` after the last part. */
  async header(): Promise<Buffer | undefined> {
    for await (const _ of this.contents());
    while (this.#held.length < 2) await this.#more()
    if (this.#held.subarray(0, 2).toString('latin1') === '--') {
      await this.#readOff()
      return undefined
    }
    for (;;) {
      const at = this.#held.indexOf('\r\n\r\n')
      if (at > headerBytes || (at < 0 && this.#held.length > headerBytes)) {
        throw new Problem('bad_request', 'A part of the multipart body has too long a header.')
      }
      if (at >= 0) {
        const header = this.#held.subarray(0, at)
        if (!/^[ \t]*(?:\r\n|$)/.test(header.toString('latin1'))) {
          throw new Problem('bad_request', 'The multipart body is malformed after a boundary.')
        }
        this.#held = this.#held.subarray(at + 4)
        this.#isInContents = true
        return header
      }
      await this.#more()
    }
  }

  /** Stops reading the body of the request. Then the caller of this function can read and drop the remaining bytes. */
  async letGo(): Promise<void> {
    await this.#chunks.return?.()
  }

  /** Reads and ignores the bytes after the last part, so that the client can finish sending. */
  async #readOff(): Promise<void> {
    this.#held = noBytes
    while (!(await this.#chunks.next()).done);
  }
}

export async function* readParts(
  body: AsyncIterable<Buffer>,
  boundary: string,
  maxParts: number,
): AsyncGenerator<Part, void, void> {
  const reader = new PartReader(body, boundary)
  try {
    for (let count = 0; ; count++) {
      const header = await reader.header()
      if (header === undefined) return
      if (count === maxParts)
        throw new Problem('bad_request', `The multipart body must not have more than ${maxParts} parts.`)
      yield { name: nameOf(header), contents: { [Symbol.asyncIterator]: () => reader.contents() } }
    }
  } finally {
    await reader.letGo()
  }
}

/** Reads a short text part, as raw bytes. */
export const readText = async ({ name, contents }: Part, maxBytes: number): Promise<Buffer> => {
  const pieces: Buffer[] = []
  let size = 0
  for await (const piece of contents) {
    size += piece.length
    if (size > maxBytes) throw new Problem('bad_request', `${name.slice(0, 100)} is too long.`)
    pieces.push(Buffer.from(piece))
  }
  return Buffer.concat(pieces)
}
