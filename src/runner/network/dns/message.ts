// The little of DNS that our resolver speaks (RFC 1035 §4): it reads a question and writes an answer of addresses. What
// upstream resolvers answer is read by c-ares, in Node. Everything read here was written by a sandbox.

export const types = { A: 1 } as const
export const codes = { ok: 0, formatError: 1, serverFailure: 2, noSuchName: 3, notImplemented: 4, refused: 5 } as const

type Code = (typeof codes)[keyof typeof codes]

type Question = {
  /** The first twelve bytes and the question itself, as they came: an answer repeats them. */
  asked: Buffer
  type: number
  /** In lower case; undefined where it is no name that could be on a list. */
  name: string | undefined
}

const headerBytes = 12
const mostNameBytes = 255
const classIn = 1

/** Enough for any question, with what EDNS adds. */
export const mostQuestionBytes = 1232

type Name = { end: number; name: string | undefined }

/** Labels up to the root. A name in a question has nothing before it to point back to, so pointers are an error. */
const readName = (message: Buffer): Name | undefined => {
  const labels: string[] = []
  let at = headerBytes
  for (;;) {
    const length = message[at]
    if (length === undefined || length > 63) return undefined
    const end = at + 1 + length
    if (end > message.length || end - headerBytes > mostNameBytes) return undefined
    if (length === 0) {
      // A dot inside a label must not pass for one between labels.
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
 * The question of a message; a code for one that is answered with nothing but that code; undefined for what is not
 * answered at all, because it is itself an answer or too short to be one.
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

/** The header of an answer: the id and whether recursion was wished for are repeated, the counts are set anew. */
const headerOf = (message: Buffer, code: Code, isCut: boolean, questions: 0 | 1, answers: number) => {
  const header = Buffer.alloc(headerBytes)
  message.copy(header, 0, 0, 2)
  header.writeUInt8(0x80 | (message.readUInt8(2) & 0x01) | (isCut ? 0x02 : 0), 2)
  header.writeUInt8(0x80 | code, 3)
  header.writeUInt16BE(questions, 4)
  header.writeUInt16BE(answers, 6)
  return header
}

/** For a message whose question could not be read. */
export const writeCode = (message: Buffer, code: Code): Buffer => headerOf(message, code, false, 0, 0)

// The name of the record is a pointer to the question's.
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

/** At most `limit` bytes; what does not fit is left out and the answer marked as cut, so that it is asked again by TCP. */
export const writeAnswer = ({ asked }: Question, { code, addresses, seconds }: Answer, limit: number): Buffer => {
  const records = Buffer.concat(addresses.map((address) => addressRecord(address, seconds)))
  const isCut = asked.length + records.length > limit
  const header = headerOf(asked, code, isCut, 1, isCut ? 0 : addresses.length)
  return Buffer.concat([header, asked.subarray(headerBytes), ...(isCut ? [] : [records])])
}
