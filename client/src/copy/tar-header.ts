// Writes and reads the headers of tar archives. Writes the format of GNU tar, which the tar programs of all images can read. Also
// reads the extended headers of POSIX.

export const blockBytes = 512

export type Kind = 'file' | 'directory' | 'symlink' | 'link' | 'other'

export type Header = {
  /** The name as bytes, because a file name need not be text. */
  name: Buffer
  kind: Kind
  size: number
  mode: number
  /** Time of the last change, in seconds. */
  mtime: number
  linkName: Buffer
}

const flags: Record<string, Kind> = {
  '0': 'file',
  '\0': 'file',
  '7': 'file',
  '1': 'link',
  '2': 'symlink',
  '5': 'directory',
}
const flagOf: Record<Exclude<Kind, 'other'>, string> = { file: '0', link: '1', symlink: '2', directory: '5' }

export class BadTar extends Error {}

const sumOf = (block: Buffer): number => {
  let sum = 0
  for (let at = 0; at < blockBytes; at += 1) sum += at >= 148 && at < 156 ? 0x20 : (block[at] ?? 0)
  return sum
}

/** Reads a number of a header. The field has octal digits or, if its highest bit is set, a binary number (base 256). */
const readNumber = (field: Buffer): number => {
  if (((field[0] ?? 0) & 0x80) !== 0) {
    let value = BigInt((field[0] ?? 0) & 0x7f)
    for (const byte of field.subarray(1)) value = value * 256n + BigInt(byte)
    if (value > BigInt(Number.MAX_SAFE_INTEGER)) throw new BadTar('a number is too large')
    return Number(value)
  }
  const text = field.toString('latin1').replaceAll('\0', ' ').trim()
  if (!/^[0-7]*$/.test(text)) throw new BadTar('a number is broken')
  return text === '' ? 0 : Number.parseInt(text, 8)
}

const untilNul = (field: Buffer): Buffer => {
  const end = field.indexOf(0)
  return end < 0 ? field : field.subarray(0, end)
}

export const isEmptyBlock = (block: Buffer): boolean => block.every((byte) => byte === 0)

/** Reads a header block. `flag` is the letter of the entry's type, which also marks extended headers. */
export const readHeader = (block: Buffer): Header & { flag: string } => {
  if (readNumber(block.subarray(148, 156)) !== sumOf(block)) throw new BadTar('a checksum is wrong')
  const flag = String.fromCharCode(block[156] ?? 0)
  const isPosix = block.subarray(257, 263).toString('latin1') === 'ustar\0'
  const prefix = isPosix ? untilNul(block.subarray(345, 500)) : Buffer.alloc(0)
  const name = untilNul(block.subarray(0, 100))
  return {
    flag,
    kind: flags[flag] ?? 'other',
    name: Buffer.from(prefix.length === 0 ? name : Buffer.concat([prefix, Buffer.from('/'), name])),
    size: readNumber(block.subarray(124, 136)),
    mode: readNumber(block.subarray(100, 108)) & 0o7777,
    mtime: readNumber(block.subarray(136, 148)),
    linkName: Buffer.from(untilNul(block.subarray(157, 257))),
  }
}

const writeOctal = (block: Buffer, value: number, at: number, length: number): void => {
  block.write(`${value.toString(8).padStart(length - 1, '0')}\0`, at, 'latin1')
}

const mostOctal = 8 ** 11 - 1

const writeSize = (block: Buffer, size: number): void => {
  if (size <= mostOctal) writeOctal(block, size, 124, 12)
  else {
    block[124] = 0x80
    block.writeBigUInt64BE(BigInt(size), 128)
  }
}

const blockOf = (flag: string, { name, size, mode, mtime, linkName }: Omit<Header, 'kind'>): Buffer => {
  const block = Buffer.alloc(blockBytes)
  name.copy(block, 0, 0, 100)
  writeOctal(block, mode & 0o7777, 100, 8)
  writeOctal(block, 0, 108, 8)
  writeOctal(block, 0, 116, 8)
  writeSize(block, size)
  writeOctal(block, Math.min(Math.max(Math.floor(mtime), 0), mostOctal), 136, 12)
  block.write(flag, 156, 'latin1')
  linkName.copy(block, 157, 0, 100)
  block.write('ustar  \0', 257, 'latin1')
  block.write(`${sumOf(withoutSum(block)).toString(8).padStart(6, '0')}\0 `, 148, 'latin1')
  return block
}

const withoutSum = (block: Buffer): Buffer => block.fill(' ', 148, 156)

/** Returns the zero bytes that fill the last block after contents of `bytes` bytes. */
export const paddingAfter = (bytes: number): Buffer => Buffer.alloc((blockBytes - (bytes % blockBytes)) % blockBytes)

/** Returns an extra entry for a long name. The name field of a header has only 100 bytes. */
const longName = (flag: 'L' | 'K', name: Buffer): Buffer => {
  const text = Buffer.concat([name, Buffer.alloc(1)])
  const none = Buffer.alloc(0)
  const head = blockOf(flag, {
    name: Buffer.from('././@LongLink'),
    size: text.length,
    mode: 0,
    mtime: 0,
    linkName: none,
  })
  return Buffer.concat([head, text, paddingAfter(text.length)])
}

export const writeHeader = (header: Header & { kind: Exclude<Kind, 'other'> }): Buffer =>
  Buffer.concat([
    ...(header.linkName.length > 100 ? [longName('K', header.linkName)] : []),
    ...(header.name.length > 100 ? [longName('L', header.name)] : []),
    blockOf(flagOf[header.kind], header),
  ])
