// Reads the server name and the protocols from the first message of a TLS connection. The bytes come from hostile programs,
// so every length is checked. See RFC 8446 §4.1.2, RFC 6066 §3 and RFC 7301.

export type ClientHello = {
  /** The server name in lower case, without a dot at the end. Absent: the client named no server. */
  serverName: string | undefined
  protocols: readonly string[]
}

/** Maximum size in bytes of the first message. Real clients send up to 2 KiB, with post-quantum keys. */
export const mostHelloBytes = 16 * 1024

const handshakeRecord = 22
const clientHello = 1
const serverNameExtension = 0
const protocolsExtension = 16

class Incomplete extends Error {}

class Reader {
  readonly #bytes: Buffer
  #at = 0
  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }
  get left() {
    return this.#bytes.length - this.#at
  }
  number(size: 1 | 2 | 3): number {
    const at = this.#at
    this.take(size)
    return this.#bytes.readUIntBE(at, size)
  }
  take(length: number): Buffer {
    if (this.left < length) throw new Incomplete()
    this.#at += length
    return this.#bytes.subarray(this.#at - length, this.#at)
  }
  /** Reads a field that begins with its own length: a number of `size` bytes. */
  vector(size: 1 | 2 | 3): Reader {
    return new Reader(this.take(this.number(size)))
  }
}

/**
 * Returns the bytes of the handshake in the records that have arrived so far. Undefined if the bytes are not TLS handshake
 * records.
 */
const handshakeIn = (bytes: Buffer): Buffer | undefined => {
  const parts: Buffer[] = []
  const records = new Reader(bytes)
  while (records.left > 0) {
    if (records.number(1) !== handshakeRecord) return undefined
    if (records.left >= 1 && bytes[bytes.length - records.left] !== 3) return undefined
    if (records.left < 4) break
    records.take(2)
    const length = records.number(2)
    parts.push(records.take(Math.min(length, records.left)))
  }
  return Buffer.concat(parts)
}

const serverNameIn = (extension: Reader): string | undefined => {
  const names = extension.vector(2)
  while (names.left > 0) {
    const type = names.number(1)
    const name = names.vector(2)
    if (type !== 0) continue
    const text = name.take(name.left).toString('latin1').toLowerCase().replace(/\.$/, '')
    return /^[a-z0-9_-]+(\.[a-z0-9_-]+)*$/.test(text) && text.length <= 253 ? text : undefined
  }
  return undefined
}

const protocolsIn = (extension: Reader): string[] => {
  const list = extension.vector(2)
  const found: string[] = []
  while (list.left > 0) {
    const name = list.vector(1)
    found.push(name.take(name.left).toString('latin1'))
  }
  return found
}

/**
 * Reads the bytes that have arrived so far. `more`: the message is not complete. `other`: the message is not TLS, or a kind of TLS
 * that this function cannot read.
 */
export const readClientHello = (bytes: Buffer): ClientHello | 'more' | 'other' => {
  try {
    const handshake = handshakeIn(bytes)
    if (handshake === undefined) return 'other'
    const messages = new Reader(handshake)
    if (messages.number(1) !== clientHello) return 'other'
    const length = messages.number(3)
    if (length > mostHelloBytes) return 'other'
    return readWhole(new Reader(messages.take(length)))
  } catch (error) {
    if (!(error instanceof Incomplete)) throw error
    return bytes.length >= mostHelloBytes ? 'other' : 'more'
  }
}

const readWhole = (hello: Reader): ClientHello | 'other' => {
  const found: ClientHello = { serverName: undefined, protocols: [] }
  try {
    hello.take(2 + 32)
    hello.vector(1)
    hello.vector(2)
    hello.vector(1)
    if (hello.left === 0) return found
    const extensions = hello.vector(2)
    while (extensions.left > 0) {
      const type = extensions.number(2)
      const extension = extensions.vector(2)
      if (type === serverNameExtension) found.serverName = serverNameIn(extension)
      if (type === protocolsExtension) found.protocols = protocolsIn(extension)
    }
    return found
  } catch (error) {
    // All bytes have arrived, so a length in the message is wrong. The message is passed on to the server that the sandbox called,
    // which can report the error.
    if (error instanceof Incomplete) return 'other'
    throw error
  }
}
