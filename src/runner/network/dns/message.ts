// Reads DNS questions and writes answers (RFC 1035 §4), for Alcove's own resolver. The questions come from sandboxes, so they are
// untrusted. Answers of other resolvers are read by Node's library c-ares.

export const types = { A: 1 } as const
export const codes = { ok: 0, formatError: 1, serverFailure: 2, noSuchName: 3, notImplemented: 4, refused: 5 } as const

type Code = (typeof codes)[keyof typeof codes]

type Question = {
  /**
   * The first part of the received DNS message: its header (12 bytes) and its question. The answer has a new header, and repeats
   * the question.
   */
  asked: Buffer
  type: number
  /** The name in the question, in lower case. Undefined if the name contains characters that no allowed domain may contain. */
  name: string | undefined
}

const headerBytes = 12
const mostNameBytes = 255
const classIn = 1

/** Maximum size in bytes of a DNS message with a question, EDNS records included. */
export const mostQuestionBytes = 1232

type Name = { end: number; name: string | undefined }

/**
 * Reads the name after the header of a DNS message. A compression pointer is an error, because no name before the question exists
 * to which it could point.
 */
const readName = (message: Buffer): Name | undefined => {
  const labels: string[] = []
  let at = headerBytes
  for (;;) {
    const length = message[at]
    if (length === undefined || length > 63) return undefined
    const end = at + 1 + length
    if (end > message.length || end - headerBytes > mostNameBytes) return undefined
    if (length === 0) {
      // Allowed domains have only these characters, so a name with other characters becomes undefined. A dot inside a label would
      // look like the label's end.
      const isPlain = labels.length > 0 && labels.every((label) => /^[a-z0-9_-]+$/.test(label))
      return { end, name: isPlain ? labels.join('.') : undefined }
    }
    labels.push(message.toString('latin1', at + 1, end).toLowerCase())
    at = end
  }
}

const isQuery = (message: Buffer) =>
  message.length >= headerBytes && message.length <= mostQuestionBytes && (message.readUInt8(2) & 0x80) === 0

/**
 * Reads the question of a message, or returns the error code for the answer. Undefined if no answer may be sent: the message is
 * itself an answer, or is too short or too long.
 */
export const readQuestion = (message: Buffer): Question | Code | undefined => {
  if (!isQuery(message)) return undefined
  if (((message.readUInt8(2) >> 3) & 15) !== 0) return codes.notImplemented
  if (message.readUInt16BE(4) !== 1 || message.readUInt16BE(6) !== 0) return codes.formatError
  const read = readName(message)
  if (read === undefined || read.end + 4 > message.length) return codes.formatError
  const type = message.readUInt16BE(read.end)
  if (message.readUInt16BE(read.end + 2) !== classIn) return codes.notImplemented
  return { asked: message.subarray(0, read.end + 4), type, name: read.name }
}

/** Makes the header of an answer. The header repeats the id and the flag "recursion desired" of `message`. */
const headerOf = (message: Buffer, code: Code, isCut: boolean, questions: 0 | 1, answers: number) => {
  const header = Buffer.alloc(headerBytes)
  message.copy(header, 0, 0, 2)
  header.writeUInt8(0x80 | (message.readUInt8(2) & 0x01) | (isCut ? 0x02 : 0), 2)
  header.writeUInt8(0x80 | code, 3)
  header.writeUInt16BE(questions, 4)
  header.writeUInt16BE(answers, 6)
  return header
}

/** Makes the answer to a message whose question could not be read. The answer contains only the error code. */
export const writeCode = (message: Buffer, code: Code): Buffer => headerOf(message, code, false, 0, 0)

// Makes a DNS record with one address. The record's name is a pointer to the name in the question.
const addressRecord = (address: string, seconds: number) => {
  const record = Buffer.from([
    0xc0,
    headerBytes,
    0,
    types.A,
    0,
    classIn,
    0,
    0,
    0,
    0,
    0,
    4,
    ...address.split('.').map(Number),
  ])
  record.writeUInt32BE(seconds, 6)
  return record
}

export type Answer = { code: Code; addresses: readonly string[]; seconds: number }

/** Makes an answer of at most `limit` bytes. If the addresses do not fit, leaves them out, and the client asks again over TCP. */
export const writeAnswer = ({ asked }: Question, { code, addresses, seconds }: Answer, limit: number): Buffer => {
  const records = Buffer.concat(addresses.map((address) => addressRecord(address, seconds)))
  const isCut = asked.length + records.length > limit
  const header = headerOf(asked, code, isCut, 1, isCut ? 0 : addresses.length)
  return Buffer.concat([header, asked.subarray(headerBytes), ...(isCut ? [] : [records])])
}
