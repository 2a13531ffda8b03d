// Cuts a tar stream into chunks where its own content says so, so that a small change of a disk changes few of them.
//
// Everything in a tar begins at a multiple of 512 bytes, so whole blocks are hashed: a block whose hash begins with zeros ends a
// chunk. Whatever was put in or taken out before a block, the same block ends a chunk.
export const blockBytes = 512
const minBytes = 2 * 1024 * 1024
export const maxChunkBytes = 8 * 1024 * 1024
/** A hash ends a chunk when these 12 bits are zero: on average one block in 4096, which is 2 MiB after the least size. */
const endingMask = 0xfff00000

const wordsPerBlock = blockBytes / 4

/** FNV-1a over words; an attacker who finds collisions cuts a disk of their own badly. */
const endsChunk = (words: Int32Array, block: number): boolean => {
  let hash = 0x811c9dc5
  for (let at = block * wordsPerBlock, end = at + wordsPerBlock; at < end; at += 1) {
    hash = Math.imul(hash ^ words[at]!, 0x01000193)
  }
  return (hash & endingMask) === 0
}

/** Each chunk is a copy of its own. Works piece by piece as they come, so that nothing else waits long. */
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
      // Not past the end of the next block that is looked at, once there is enough: then a cut never has to move bytes.
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
