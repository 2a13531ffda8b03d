// Tests saves of a disk whose chunks are already in the object store. Needs root for tar's mount namespace.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { suite, test } from 'node:test'
import type { StoreAddress } from '#src/kit/store-address.ts'
import { needsRoot } from '#test/needs-root.ts'
import { findKept } from './kept-chunks.ts'
import { chunksOf, manifestKey } from './keys.ts'
import { packDisk } from './pack.ts'
import { type ObjectStore, openStore } from './store.ts'
import { bound, sandboxId } from './testing/archives.ts'
import { diskIn, Scratch } from './testing/disks.ts'
import { startS3, withoutS3 } from './testing/real-s3.ts'

const owner = { sandboxId }

/** Makes a disk with 12 MiB of random bytes, and a store that counts how often chunks are read and written. */
const makeStore = (scratch: Scratch, address: StoreAddress = { kind: 'directory', path: scratch.make('store') }) => {
  const disk = diskIn(scratch.make('disk'))
  for (const part of [disk.upper, disk.etc]) scratch.make(part.slice(scratch.path.length + 1))
  writeFileSync(`${disk.upper}/big`, randomBytes(12 * 2 ** 20))
  const plain = openStore(address)
  const calls = { reads: 0, writes: 0 }
  const store: ObjectStore = {
    ...bound(plain),
    get: (key, limit, signal) => {
      if (key.startsWith(chunksOf(owner))) calls.reads += 1
      return plain.get(key, limit, signal)
    },
    put: (key, content, signal) => {
      if (key.startsWith(chunksOf(owner))) calls.writes += 1
      return plain.put(key, content, signal)
    },
  }
  const save = async (archiveId: string) => {
    calls.reads = 0
    calls.writes = 0
    const kept = await findKept({ store, sandboxId })
    return await packDisk({ store, sandboxId, archiveId, disk, kept })
  }
  const chunks = async () => await Array.fromAsync(store.list(chunksOf(owner)))
  return { store, calls, save, chunks }
}

suite('chunks of an earlier save', { skip: needsRoot }, () => {
  test('a second save of an unchanged disk neither reads nor writes a chunk; both saves have the same size', async () => {
    using scratch = new Scratch()
    const { calls, save } = makeStore(scratch)
    const first = await save('one')
    assert.ok(calls.writes > 1)
    const second = await save('two')
    assert.deepEqual(calls, { reads: 0, writes: 0 })
    assert.deepEqual([second.bytes, second.storedBytes], [first.bytes, first.storedBytes])
  })

  test('a save of an unchanged disk moves no chunk to or from S3', { skip: withoutS3 }, async () => {
    using scratch = new Scratch()
    await using s3 = await startS3('saves')
    const { store, calls, save } = makeStore(scratch, s3.address)
    await save('one')
    await save('two')
    assert.deepEqual(calls, { reads: 0, writes: 0 })
    await store.close()
  })

  test('if a chunk is missing in the store, or has a wrong size there, the next save writes the chunk again', async () => {
    using scratch = new Scratch()
    const { store, calls, save, chunks } = makeStore(scratch)
    await save('one')
    const [gone, short] = await chunks()
    await store.remove(gone!.key)
    await store.put(short!.key, Buffer.from('short'))
    await save('two')
    assert.equal(calls.writes, 2)
    assert.deepEqual(
      (await chunks()).filter(({ key }) => key === short!.key),
      [short],
    )
  })

  test('if no readable manifest lists a stored chunk, the next save reads the chunk to check its content', async () => {
    using scratch = new Scratch()
    const { store, calls, save, chunks } = makeStore(scratch)
    await save('one')
    await store.put(manifestKey(owner, 'one'), Buffer.from('{'))
    await save('two')
    assert.deepEqual(calls, { reads: (await chunks()).length, writes: 0 })
    await store.remove(manifestKey(owner, 'two'))
    await save('three')
    assert.deepEqual(calls, { reads: (await chunks()).length, writes: 0 })
  })
})
