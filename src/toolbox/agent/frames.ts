// The frames between gate and agent (agent/PROTOCOL.md). The agent is untrusted: check every size before memory is allocated, and
// every field before use.

export const maxPayloadBytes = 1024 * 1024
export const maxRequestBytes = 8 * 1024 * 1024
/** Number of bytes of standard input that may be sent before the agent allows more with a frame CREDIT. */
export const inputWindowBytes = 256 * 1024
export const headerBytes = 5

export const kinds = {
  part: 0x00,
  exec: 0x01,
  dial: 0x02,
  info: 0x03,
  shutdown: 0x04,
  spawn: 0x05,
  attach: 0x06,
  input: 0x07,
  closeInput: 0x08,
  resize: 0x09,
  signal: 0x0a,
  list: 0x0b,
  remove: 0x0c,
  fileStat: 0x20,
  fileList: 0x21,
  fileRead: 0x22,
  fileWrite: 0x23,
  fileMkdir: 0x24,
  fileMove: 0x25,
  fileRemove: 0x26,
  filePermissions: 0x27,
  fileUnpack: 0x28,
  sessionOpen: 0x30,
  sessionList: 0x31,
  sessionExec: 0x32,
  sessionRemove: 0x33,
  commandShow: 0x34,
  commandAttach: 0x35,
  commandInput: 0x36,
  stdin: 0x40,
  stdinEnd: 0x41,
  kill: 0x42,
  ok: 0x80,
  failed: 0x81,
  stdout: 0x82,
  stderr: 0x83,
  exit: 0x84,
  credit: 0x85,
  lost: 0x86,
  job: 0x87,
  end: 0x88,
  entry: 0x89,
  session: 0x8a,
  command: 0x8b,
  text: 0x8c,
} as const

/**
 * Kinds of frames that must have a payload. A hostile agent could send empty frames without end, because limits count only payload
 * bytes.
 */
const bringing: ReadonlySet<number> = new Set([kinds.stdout, kinds.stderr, kinds.text])

/** Throws if a payload is too large, or empty although its kind needs bytes. Call this before memory is allocated. */
export const checkSize = (kind: number, payloadBytes: number, most = maxPayloadBytes): void => {
  if (payloadBytes > most || (payloadBytes === 0 && bringing.has(kind)))
    throw new BadFrame(`a frame of kind ${kind} with ${payloadBytes} bytes`)
}

export type Frame = { kind: number; payload: Buffer }

/** Thrown if the agent sent bytes that are not a frame, or a frame that is not allowed here. */
export class BadFrame extends Error {
  override name = 'BadFrame'
}

export const frameHeader = (kind: number, payloadBytes: number): Buffer => {
  if (payloadBytes > maxPayloadBytes) throw new RangeError(`a frame holds at most ${maxPayloadBytes} bytes`)
  const header = Buffer.allocUnsafe(headerBytes)
  header.writeUInt32LE(payloadBytes, 0)
  header[4] = kind
  return header
}

export const encodeFrame = (kind: number, payload: Uint8Array = Buffer.alloc(0)): Buffer =>
  Buffer.concat([frameHeader(kind, payload.length), payload])

/** Encodes a request as one frame, or as several frames if it is too large for one. */
export const encodeRequest = (kind: number, body: Uint8Array): Buffer[] => {
  if (body.length > maxRequestBytes) throw new RangeError(`a request holds at most ${maxRequestBytes} bytes`)
  const frames: Buffer[] = []
  let at = 0
  for (; body.length - at > maxPayloadBytes; at += maxPayloadBytes) {
    frames.push(encodeFrame(kinds.part, body.subarray(at, at + maxPayloadBytes)))
  }
  frames.push(encodeFrame(kind, body.subarray(at)))
  return frames
}

/**
 * Cuts a byte stream into frames. `push` copies its chunk, so the caller can reuse the chunk's memory immediately. Each payload has
 * its own memory.
 */
export class FrameDecoder {
  readonly #header = Buffer.alloc(headerBytes)
  #headerSize = 0
  #payload: Buffer | undefined
  #payloadSize = 0

  push(chunk: Buffer): Frame[] {
    const frames: Frame[] = []
    for (let at = 0; at < chunk.length; ) {
      if (this.#payload === undefined) {
        const size = chunk.copy(this.#header, this.#headerSize, at)
        this.#headerSize += size
        at += size
        if (this.#headerSize < headerBytes) break
        const payloadBytes = this.#header.readUInt32LE(0)
        checkSize(this.#header[4]!, payloadBytes)
        this.#payload = Buffer.allocUnsafe(payloadBytes)
        this.#payloadSize = 0
      }
      const size = chunk.copy(this.#payload, this.#payloadSize, at)
      this.#payloadSize += size
      at += size
      if (this.#payloadSize < this.#payload.length) break
      frames.push({ kind: this.#header[4]!, payload: this.#payload })
      this.#payload = undefined
      this.#headerSize = 0
    }
    return frames
  }

  /** True if the last frame is complete, so the stream may end here. */
  get isBetweenFrames(): boolean {
    return this.#headerSize === 0
  }
}

/** Encodes the fields of a request. */
export class FieldWriter {
  #pieces: Buffer[] = []

  u8(value: number): this {
    this.#pieces.push(Buffer.of(value))
    return this
  }

  u16(value: number): this {
    const piece = Buffer.allocUnsafe(2)
    piece.writeUInt16LE(value)
    return this.#add(piece)
  }

  u32(value: number): this {
    const piece = Buffer.allocUnsafe(4)
    piece.writeUInt32LE(value)
    return this.#add(piece)
  }

  u64(value: number): this {
    const piece = Buffer.allocUnsafe(8)
    piece.writeBigUInt64LE(BigInt(value))
    return this.#add(piece)
  }

  /** Writes a text. Throws at a NUL, where the agent would cut the name, argument or variable. */
  string(value: string | Uint8Array): this {
    const bytes = typeof value === 'string' ? Buffer.from(value) : Buffer.from(value)
    if (bytes.includes(0)) throw new TypeError('a string with a NUL inside')
    return this.bytes(bytes).u8(0)
  }

  strings(values: readonly (string | Uint8Array)[]): this {
    this.u32(values.length)
    for (const value of values) this.string(value)
    return this
  }

  bytes(value: Uint8Array): this {
    this.u32(value.length)
    return this.#add(Buffer.from(value))
  }

  #add(piece: Buffer): this {
    this.#pieces.push(piece)
    return this
  }

  /** Returns the written bytes and clears the writer. */
  done(): Buffer {
    const written = Buffer.concat(this.#pieces)
    this.#pieces = []
    return written
  }
}

/** Largest time that a `Date` holds, in ms before or after 1970 (ECMA-262, "Time Values"). */
const farthestTime = 8.64e15

/** Reads the fields of an answer; throws `BadFrame` if a field is missing. */
export class FieldReader {
  #at = 0
  readonly #payload: Buffer

  constructor(payload: Buffer) {
    this.#payload = payload
  }

  #take(size: number): Buffer {
    if (size > this.#payload.length - this.#at) throw new BadFrame('a payload that is too short')
    this.#at += size
    return this.#payload.subarray(this.#at - size, this.#at)
  }

  u8(): number {
    return this.#take(1).readUInt8()
  }

  u16(): number {
    return this.#take(2).readUInt16LE()
  }

  u32(): number {
    return this.#take(4).readUInt32LE()
  }

  u64(): number {
    const value = this.#take(8).readBigUInt64LE()
    if (value > BigInt(Number.MAX_SAFE_INTEGER)) throw new BadFrame('a number that is too large')
    return Number(value)
  }

  /** Reads a size that a file system reports. A value above `Number.MAX_SAFE_INTEGER` becomes that maximum. */
  u64OrMost(): number {
    return Math.min(Number(this.#take(8).readBigUInt64LE()), Number.MAX_SAFE_INTEGER)
  }

  /** Reads milliseconds since 1970 (64 bits). A time outside the range of `Date` becomes the nearest `Date`. */
  time(): Date {
    const milliseconds = Number(this.#take(8).readBigInt64LE())
    return new Date(Math.max(-farthestTime, Math.min(farthestTime, milliseconds)))
  }

  /** Reads a number, and returns the word at that position of `words`. */
  word<T>(words: readonly T[]): T {
    const word = words[this.u8()]
    if (word === undefined) throw new BadFrame('a state that does not exist')
    return word
  }

  bytes(): Buffer {
    return this.#take(this.u32())
  }

  rawString(): Buffer {
    const bytes = this.bytes()
    if (this.u8() !== 0 || bytes.includes(0)) throw new BadFrame('a string without its end')
    return bytes
  }

  string(): string {
    return this.rawString().toString()
  }

  /** Call after the last field: throws `BadFrame` if bytes are left. */
  end(): void {
    if (this.#at !== this.#payload.length) throw new BadFrame('a payload that is too long')
  }
}
