// Cuts a tar stream into chunks at positions that depend on the content, so that a small change of a disk changes few chunks.
//
// Everything in a tar begins at a multiple of 512 bytes, so whole blocks are hashed. A block whose hash begins with zeros ends a
// chunk. The same block ends a chunk even if data was inserted or removed before it.
export const blockBytes = 512
const minBytes = 2 * 1024 * 1024
export const maxChunkBytes = 8 * 1024 * 1024
/**
 * A chunk ends where these 12 bits of the hash are zero: on average after 4096 blocks, which is 2 MiB beyond the minimum size.
 */
const endingMask = 0xfff00000

const wordsPerBlock = blockBytes / 4

/**
 * Hashes a block with FNV-1a over words. A weak hash is enough: who forges hashes only makes the chunks of their own disk too
 * long or too short.
 */
const endsChunk = (words: Int32Array, block: number): boolean => {
  let hash = 0x811c9dc5
  for (let at = block * wordsPerBlock, end = at + wordsPerBlock; at < end; at += 1) {
    hash = Math.imul(hash ^ words[at]!, 0x01000193)
  }
  return (hash & endingMask) === 0
}

/**
 * Cuts the input into chunks, each of which is a separate copy. The input is handled piece by piece, so that other work is not
 * delayed.
 */
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
      // Copy only up to the next position where the chunk may end, so that no bytes have to be moved when it ends there.
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
