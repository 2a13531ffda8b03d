// Computes how many bytes the output of a sandbox takes in a JSON answer. A control character takes six bytes, and a byte that
// is not valid UTF-8 takes three.
import { isUtf8 } from 'node:buffer'

/** Returns the size of `value` as JSON, in bytes. */
export const jsonBytes = (value: unknown): number => Buffer.byteLength(JSON.stringify(value))

/** Returns the length of `bytes`. If they end inside a character, this incomplete character is not counted. */
export const wholeCharacters = (bytes: Uint8Array): number => {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back]!
    if ((byte & 0b1100_0000) === 0b1000_0000) continue
    const needs = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1
    return needs > back ? bytes.length - back : bytes.length
  }
  return bytes.length
}

/** Returns the number of bytes at the beginning of `bytes` that are the end of a character whose beginning is missing. */
export const brokenCharacter = (bytes: Uint8Array): number => {
  let begin = 0
  while (begin < Math.min(3, bytes.length) && (bytes[begin]! & 0b1100_0000) === 0b1000_0000) begin++
  return begin
}

/** Returns `piece` without the incomplete characters at its beginning and its end. */
const wholeIn = (piece: Uint8Array): Uint8Array => piece.subarray(brokenCharacter(piece), wholeCharacters(piece))

const costsWith = (highByte: number): Uint8Array =>
  Uint8Array.from({ length: 256 }, (_, byte) =>
    byte >= 0x80 ? highByte : jsonBytes(String.fromCharCode(byte)) - '""'.length,
  )

const inUtf8 = costsWith(1)
const inOther = costsWith(Buffer.byteLength('\ufffd'))

/** Returns how many bytes of `piece` fit into `room` bytes of JSON, and how many bytes of JSON these take. */
export const fitIntoJson = (piece: Uint8Array, room: number): { bytes: number; json: number } => {
  const costs = isUtf8(wholeIn(piece)) ? inUtf8 : inOther
  let json = 0
  for (let bytes = 0; bytes < piece.length; bytes++) {
    const cost = costs[piece[bytes]!]!
    if (json + cost > room) return { bytes, json }
    json += cost
  }
  return { bytes: piece.length, json }
}

/** Returns how many bytes at the end of `text` fit into `room` bytes of JSON. */
export const endThatFitsIntoJson = (text: Uint8Array, room: number): number => {
  const costs = isUtf8(wholeIn(text)) ? inUtf8 : inOther
  let json = 0
  for (let bytes = 0; bytes < text.length; bytes++) {
    json += costs[text[text.length - 1 - bytes]!]!
    if (json > room) return bytes
  }
  return text.length
}
