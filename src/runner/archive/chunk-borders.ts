// Cuts a tar stream into chunks at positions that depend on its content. A small change of a disk therefore changes few chunks.
//
// Everything in a tar begins at a multiple of 512 bytes, so blocks of that size are hashed. A chunk ends after a block whose
// hash begins with zeros. Data that was inserted earlier in the stream does not change the block's hash.
export const blockBytes = 512
const minBytes = 2 * 1024 * 1024
export const maxChunkBytes = 8 * 1024 * 1024
/** A chunk ends where these 12 bits of a block's hash are zero: on average 4096 blocks (2 MiB) after the minimum size. */
const endingMask = 0xfff00000

const wordsPerBlock = blockBytes / 4

/** The hash is FNV-1a over 32-bit words. It may be weak: an attacker can only make unusual chunks of the attacker's own disk. */
const endsChunk = (words: Int32Array, block: number): boolean => {
  let hash = 0x811c9dc5
  for (let at = block * wordsPerBlock, end = at + wordsPerBlock; at < end; at += 1) {
    hash = Math.imul(hash ^ words[at]!, 0x01000193)
  }
  return (hash & endingMask) === 0
}

/** Cuts the input into chunks, each in a buffer of its own. After each piece of the input, other work of this process can run. */
export async function* cutIntoChunks(pieces: AsyncIterable<Buffer>): AsyncGenerator<Buffer<ArrayBuffer>> {
  const memory = new ArrayBuffer(maxChunkBytes)
  const buffer = Buffer.from(memory)
  const words = new Int32Array(memory)
  let filled = 0
  let looked = minBytes / blockBytes

  const take = () => {
    const chunk = Buffer.from(buffer.subarray(0, filled))
    filled = 0
    looked = minBytes / blockBytes
    return chunk
  }

  for await (const piece of pieces) {
    for (let used = 0; used < piece.length; ) {
      // Copy only to the next position where the chunk may end, so that the buffer gets no byte of the next chunk.
      const until = filled < minBytes ? minBytes : (Math.floor(filled / blockBytes) + 1) * blockBytes
      const copied = piece.copy(buffer, filled, used, used + until - filled)
      filled += copied
      used += copied
      if (filled < until || filled === minBytes) continue
      const isEnd = endsChunk(words, looked)
      looked += 1
      if (isEnd || filled === maxChunkBytes) yield take()
    }
  }
  if (filled > 0) yield take()
}
