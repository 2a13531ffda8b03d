import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { suite, test } from 'node:test'
import fc from 'fast-check'
import { blockBytes, cutIntoChunks, maxChunkBytes } from './chunk-borders.ts'

const MiB = 1024 * 1024

/** Returns pseudo-random bytes. Every run of the test gets the same bytes. */
const noise = (bytes: number, seed = 1): Buffer => {
  const words = new Uint32Array(Math.ceil(bytes / 4))
  let state = seed
  for (let at = 0; at < words.length; at += 1) {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    words[at] = state
  }
  return Buffer.from(words.buffer, 0, bytes)
}

async function* inPieces(content: Buffer, sizes: readonly number[]) {
  let turn = 0
  for (let at = 0; at < content.length; ) {
    const size = sizes[turn++ % sizes.length] ?? 1
    yield content.subarray(at, at + size)
    at += size
  }
}

const cut = async (content: Buffer, sizes: readonly number[] = [65536]): Promise<Buffer[]> =>
  Array.fromAsync(cutIntoChunks(inPieces(content, sizes)))

const hashes = (chunks: readonly Buffer[]) => chunks.map((chunk) => createHash('sha256').update(chunk).digest('hex'))

suite('cutting a stream into chunks', () => {
  test('all chunks together are the tar stream; none is too large; all but the last have whole tar blocks', async () => {
    const content = noise(40 * MiB + 777)
    const chunks = await cut(content)
    assert.ok(Buffer.concat(chunks).equals(content))
    assert.ok(chunks.length >= 5)
    assert.ok(chunks.every((chunk) => chunk.length <= maxChunkBytes))
    assert.ok(chunks.slice(0, -1).every((chunk) => chunk.length >= 2 * MiB && chunk.length % blockBytes === 0))
  })

  test('the chunk borders of a stream do not depend on the sizes of the pieces in which it arrives', async () => {
    const content = noise(9 * MiB)
    const expected = hashes(await cut(content))
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.integer({ min: 1000, max: 3 * MiB }), { minLength: 1, maxLength: 5 }),
        async (sizes) => assert.deepEqual(hashes(await cut(content, sizes)), expected),
      ),
      { numRuns: 10 },
    )
  })

  test('after an insertion near the beginning of a stream, most of its chunks are the same as before', async () => {
    const content = noise(64 * MiB)
    const before = new Set(hashes(await cut(content)))
    const changed = Buffer.concat([content.subarray(0, MiB), noise(3 * blockBytes, 9), content.subarray(MiB)])
    const after = hashes(await cut(changed))
    const fresh = after.filter((hash) => !before.has(hash))
    assert.ok(fresh.length <= 3, `${fresh.length} of ${after.length} chunks are new`)
  })

  test('a stream of equal bytes is cut at the maximum chunk size; an empty stream has no chunk', async () => {
    const chunks = await cut(Buffer.alloc(20 * MiB))
    assert.deepEqual([...new Set(chunks.slice(0, -1).map((chunk) => chunk.length))], [maxChunkBytes])
    assert.deepEqual(await cut(Buffer.alloc(0)), [])
  })
})
