// Raises all user and group ids in a tar stream, because chown after unpacking would remove setuid bits. Omits device nodes,
// because the runtime gives a sandbox its devices.
import { Transform } from 'node:stream'

const blockSize = 512
/** Offset and length of fields in a ustar header. */
const uidAt = [108, 8] as const
const gidAt = [116, 8] as const
const sizeAt = [124, 12] as const
const checksumAt = [148, 8] as const
const typeAt = 156
const deviceTypes = ['3', '4']
/** Types of extended headers. The content of such a header describes the next entry, and the header itself has no owner. */
const extendedTypes = ['x', 'g', 'L', 'K']

type Field = readonly [offset: number, length: number]

const numberIn = (header: Buffer, [offset, length]: Field) => {
  const text = header
    .toString('latin1', offset, offset + length)
    .replace(/[\0 ]+$/, '')
    .trim()
  if (!/^[0-7]*$/.test(text)) throw new Error('the tar stream holds a number that is not octal')
  return text === '' ? 0 : Number.parseInt(text, 8)
}

const writeNumber = (header: Buffer, [offset, length]: Field, value: number) => {
  const digits = value.toString(8).padStart(length - 1, '0')
  if (digits.length > length - 1) throw new Error(`the id ${value} does not fit into a tar header`)
  header.write(`${digits}\0`, offset, 'latin1')
}

const writeChecksum = (header: Buffer) => {
  header.fill(' ', checksumAt[0], checksumAt[0] + checksumAt[1])
  const sum = header.reduce((total, byte) => total + byte, 0)
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, checksumAt[0], 'latin1')
}

export const shiftOwners = (by: number): Transform => {
  let partial = Buffer.alloc(0)
  /** Bytes of the current tar entry's content, padding included, that have not been passed on yet. */
  let toPass = 0
  let atEnd = false

  const shifted = (original: Buffer): Buffer | undefined => {
    if (original.every((byte) => byte === 0)) {
      atEnd = true
      return original
    }
    const type = String.fromCharCode(original[typeAt] as number)
    toPass = Math.ceil(numberIn(original, sizeAt) / blockSize) * blockSize
    if (extendedTypes.includes(type)) return original
    if (deviceTypes.includes(type)) return undefined
    const header = Buffer.from(original)
    for (const field of [uidAt, gidAt]) writeNumber(header, field, numberIn(header, field) + by)
    writeChecksum(header)
    return header
  }

  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      try {
        let data = partial.length === 0 ? chunk : Buffer.concat([partial, chunk])
        while (data.length > 0) {
          if (atEnd || toPass > 0) {
            const passing = atEnd ? data.length : Math.min(toPass, data.length)
            this.push(data.subarray(0, passing))
            toPass -= atEnd ? 0 : passing
            data = data.subarray(passing)
          } else if (data.length >= blockSize) {
            const header = shifted(data.subarray(0, blockSize))
            if (header !== undefined) this.push(header)
            data = data.subarray(blockSize)
          } else break
        }
        partial = Buffer.from(data)
        done()
      } catch (error) {
        done(error as Error)
      }
    },
    flush(done) {
      done(atEnd ? null : new Error('the tar stream ended too early'))
    },
  })
}
