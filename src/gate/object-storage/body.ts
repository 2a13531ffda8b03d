// Checks the bodies of uploads while they pass to a runner. If a signature or a checksum is wrong, the stream ends with an
// error. A body is plain, or in `aws-chunked` form: chunks, which may be signed, and perhaps checksums at the end.
import { createHash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { crc32 } from 'node:zlib'
import { S3Refusal } from './refusal.ts'
import { type SignedCall, type SigningKey, signatureOfChunk, signatureOfTrailer } from './signature.ts'

type Pieces = AsyncIterable<Buffer>

const wrong = () => new S3Refusal('BadDigest', 'The body does not match its checksum.')
const cut = () =>
  new S3Refusal('IncompleteBody', 'The body is shorter or longer than its headers say, or its chunks are malformed.')

const sha256Of = (text: Buffer | string) => createHash('sha256').update(text).digest('hex')

/**
 * Computes checksums of a whole body, and compares them with the checksums that the caller has sent. Ignores checksums
 * whose algorithm is unknown.
 */
class Checks {
  readonly #expected: ReadonlyMap<string, string>
  readonly #sha256 = createHash('sha256')
  #crc32 = 0
  bytes = 0

  constructor(expected: ReadonlyMap<string, string>) {
    this.#expected = expected
  }

  add(piece: Buffer) {
    this.bytes += piece.length
    this.#sha256.update(piece)
    this.#crc32 = crc32(piece, this.#crc32)
  }

  check() {
    const sha256 = this.#sha256.digest()
    const crc = Buffer.alloc(4)
    crc.writeUInt32BE(this.#crc32 >>> 0)
    const found: Record<string, string> = {
      hash: sha256.toString('hex'),
      'x-amz-checksum-sha256': sha256.toString('base64'),
      'x-amz-checksum-crc32': crc.toString('base64'),
    }
    for (const [name, value] of this.#expected) if (name in found && found[name] !== value) throw wrong()
  }
}

const checksumsIn = ({ headers }: IncomingMessage): Map<string, string> =>
  new Map(Object.entries(headers).filter((entry): entry is [string, string] => /^x-amz-checksum-/.test(entry[0])))

async function* plain(pieces: Pieces, expected: Map<string, string>): AsyncGenerator<Buffer> {
  const checks = new Checks(expected)
  for await (const piece of pieces) {
    checks.add(piece)
    yield piece
  }
  checks.check()
}

/** Reads lines and bytes from buffers, where a line may begin in one buffer and end in the next. */
class ChunkReader {
  readonly #pieces: AsyncIterator<Buffer>
  #held: Buffer = Buffer.alloc(0)

  constructor(pieces: Pieces) {
    this.#pieces = pieces[Symbol.asyncIterator]()
  }

  async #more(): Promise<boolean> {
    const { done, value } = await this.#pieces.next()
    if (done) return false
    this.#held = this.#held.length === 0 ? value : Buffer.concat([this.#held, value])
    return true
  }

  /** Returns the next line without its line break; undefined at the end. */
  async line(): Promise<string | undefined> {
    for (;;) {
      const end = this.#held.indexOf('\r\n')
      if (end > longestLine || (end < 0 && this.#held.length > longestLine)) throw cut()
      if (end >= 0) {
        const line = this.#held.toString('latin1', 0, end)
        this.#held = this.#held.subarray(end + 2)
        return line
      }
      if (!(await this.#more())) {
        if (this.#held.length > 0) throw cut()
        return undefined
      }
    }
  }

  /** Stops reading the body. If the upload was refused, other code then reads the rest of the body and drops it. */
  async close(): Promise<void> {
    await this.#pieces.return?.()
  }

  async *bytes(count: number): AsyncGenerator<Buffer> {
    for (let left = count; left > 0; ) {
      if (this.#held.length === 0 && !(await this.#more())) throw cut()
      const piece = this.#held.subarray(0, left)
      this.#held = this.#held.subarray(piece.length)
      left -= piece.length
      if (piece.length > 0) yield piece
    }
  }
}

const longestLine = 2048
const mostTrailers = 16

/** Yields the contents of an `aws-chunked` body. `key`: the signing key, present only if each chunk and the trailer are signed. */
async function* chunked(
  pieces: Pieces,
  expected: Map<string, string>,
  { length, hasTrailer, key }: { length: number; hasTrailer: boolean; key: SigningKey | undefined },
): AsyncGenerator<Buffer> {
  const checks = new Checks(expected)
  const reader = new ChunkReader(pieces)
  try {
    let signature = key?.signature ?? ''
    for (;;) {
      const [, size, said] =
        /^([0-9a-f]{1,8})(?:;chunk-signature=([0-9a-f]{64}))?$/i.exec((await reader.line()) ?? '') ?? []
      if (size === undefined) throw cut()
      const bytes = Number.parseInt(size, 16)
      if (checks.bytes + bytes > length) throw cut()
      const hash = createHash('sha256')
      for await (const piece of reader.bytes(bytes)) {
        checks.add(piece)
        hash.update(piece)
        yield piece
      }
      if (key !== undefined) {
        signature = signatureOfChunk(key, signature, hash.digest('hex'))
        if (said !== signature)
          throw new S3Refusal('SignatureDoesNotMatch', 'A chunk of the body has a wrong signature.')
      }
      if (bytes === 0) break
      if ((await reader.line()) !== '') throw cut()
    }
    if (hasTrailer) await readTrailer(reader, expected, key && { key, signature })
    else if ((await reader.line()) !== '') throw cut()
    if (checks.bytes !== length) throw cut()
    checks.check()
  } finally {
    await reader.close()
  }
}

const readTrailer = async (
  reader: ChunkReader,
  expected: Map<string, string>,
  signed: { key: SigningKey; signature: string } | undefined,
) => {
  let text = ''
  let said: string | undefined
  for (let count = 0; ; count++) {
    const line = await reader.line()
    // Some clients end the trailer with an empty line, others with the end of the body.
    if (line === undefined || line === '') break
    const [, name = '', value = ''] = /^([\w-]+):(.*)$/.exec(line) ?? []
    if (name === '' || count === mostTrailers) throw cut()
    if (name.toLowerCase() === 'x-amz-trailer-signature') said = value.trim()
    else {
      expected.set(name.toLowerCase(), value.trim())
      text += `${name.toLowerCase()}:${value.trim()}\n`
    }
  }
  if (signed && said !== signatureOfTrailer(signed.key, signed.signature, sha256Of(text)))
    throw new S3Refusal('SignatureDoesNotMatch', 'The trailer of the body has a wrong signature.')
}

/** Returns the body of a signed call, without the chunk framing. */
export const bodyOf = (request: IncomingMessage, { payload }: SignedCall, key: SigningKey): Pieces => {
  const expected = checksumsIn(request)
  const pieces: Pieces = request.iterator({ destroyOnReturn: false })
  if (/^[0-9a-f]{64}$/.test(payload)) return plain(pieces, expected.set('hash', payload))
  if (payload === 'UNSIGNED-PAYLOAD') return plain(pieces, expected)
  const [, kind, trailer] = /^STREAMING-(UNSIGNED-PAYLOAD|AWS4-HMAC-SHA256-PAYLOAD)(-TRAILER)?$/.exec(payload) ?? []
  const length = Number(request.headers['x-amz-decoded-content-length'] ?? Number.NaN)
  if (kind === undefined || !Number.isSafeInteger(length) || length < 0)
    throw new S3Refusal('InvalidRequest', 'x-amz-content-sha256 or x-amz-decoded-content-length cannot be used.')
  const isSigned = kind !== 'UNSIGNED-PAYLOAD'
  return chunked(pieces, expected, { length, hasTrailer: trailer !== undefined, key: isSigned ? key : undefined })
}
