// Reads and writes messages of the Language Server Protocol. All output of a server is untrusted.
import { findTooMuch } from '#src/http/json-text.ts'

/** Maximum size of one message, in bytes. A list of 10,000 completions has about 2 MiB. */
export const messageBytes = 4 * 1024 * 1024
const headerBytes = 4096
/** Maximum number of values in one message. Parsing blocks this process: the more values, the longer. */
const mostValues = 200_000

/** Thrown if the server broke the protocol or a limit. The message completes a sentence that begins with "The language server". */
export class BadServer extends Error {
  override name = 'BadServer'
}

export type Message = Record<string, unknown>

export const encodeMessage = (message: object): Buffer => {
  const body = Buffer.from(JSON.stringify({ jsonrpc: '2.0', ...message }))
  return Buffer.concat([Buffer.from(`Content-Length: ${body.length}\r\n\r\n`), body])
}

const lengthIn = (header: string): number => {
  const lengths = [...header.matchAll(/^content-length:[ \t]*(.*?)[ \t]*$/gim)].map(([, value]) => value)
  const [length = ''] = lengths
  if (lengths.length !== 1 || !/^\d{1,10}$/.test(length)) throw new BadServer('sends bytes that are not a message.')
  if (Number(length) > messageBytes) throw new BadServer(`sends a message of more than ${messageBytes} bytes.`)
  return Number(length)
}

const parse = (body: Buffer): Message => {
  const text = body.toString()
  if (findTooMuch(text, mostValues) !== undefined)
    throw new BadServer('sends a message with too many values, or with values that are nested too deeply.')
  let message: unknown
  try {
    message = JSON.parse(text)
  } catch {
    throw new BadServer('sends a message that is not JSON.')
  }
  if (typeof message !== 'object' || message === null) throw new BadServer('sends a message that is not an object.')
  return message as Message
}

/** Cuts the output of a server into messages. Holds at most one incomplete message. */
export class MessageReader {
  #pieces: Buffer[] = []
  #held = 0
  /** Length of the body that is being read; undefined while a header is read. */
  #wanted: number | undefined

  get heldBytes(): number {
    return this.#held
  }

  push(data: Buffer): Message[] {
    const messages: Message[] = []
    this.#pieces.push(data)
    this.#held += data.length
    while (this.#held > 0 && this.#held >= (this.#wanted ?? 0)) {
      const bytes = this.#joined()
      if (this.#wanted === undefined) {
        const end = bytes.subarray(0, headerBytes).indexOf('\r\n\r\n')
        if (end === -1 && bytes.length >= headerBytes) throw new BadServer('sends bytes that are not a message.')
        if (end === -1) break
        this.#wanted = lengthIn(bytes.toString('latin1', 0, end))
        this.#keep(bytes.subarray(end + 4))
      } else {
        messages.push(parse(bytes.subarray(0, this.#wanted)))
        this.#keep(bytes.subarray(this.#wanted))
        this.#wanted = undefined
      }
    }
    return messages
  }

  #joined(): Buffer {
    if (this.#pieces.length > 1) this.#pieces = [Buffer.concat(this.#pieces)]
    return this.#pieces[0]!
  }

  #keep(rest: Buffer): void {
    this.#pieces = rest.length === 0 ? [] : [rest]
    this.#held = rest.length
  }
}
