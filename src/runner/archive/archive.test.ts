// Tests archives of a disk with unusual and hostile files: archives in a directory, archives in S3, and damaged archives. Needs
// root.
import assert from 'node:assert/strict'
import { mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import type { StoreAddress } from '#src/kit/store-address.ts'
import { needsRoot } from '#test/needs-root.ts'
import { builtLauncher } from '../testing/test-host.ts'
import { type Archive, findArchive, packDisk } from './pack.ts'
import { removeArchives } from './remove.ts'
import { type ObjectStore, openStore } from './store.ts'
import type { DiskParts } from './tar.ts'
import { bound, fails, objects, sandboxId, watched, withoutSockets } from './testing/archives.ts'
import { diskIn, listDisk, makeNastyDisk, Scratch } from './testing/disks.ts'
import { startS3, withoutS3 } from './testing/real-s3.ts'
import { unpackDisk } from './unpack.ts'

const launcher = builtLauncher()

/** Lists the files of a sandbox in one folder (manifests or chunks) of a directory store. */
const filesOf = (root: string, folder: string) =>
  readdirSync(join(root, 'sandboxes', sandboxId, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort()

const roundTrip = (open: () => StoreAddress) => {
  let scratch: Scratch
  let store: ObjectStore
  let disk: DiskParts
  let archive: Archive
  before(() => {
    scratch = new Scratch()
    store = openStore(open())
    disk = makeNastyDisk(scratch.at('disk'))
  })
  after(async () => {
    await store.close()
    scratch[Symbol.dispose]()
  })

  test('packing a disk reports the archive’s size, and during the work the progress', async () => {
    const steps: number[] = []
    archive = await packDisk({ store, sandboxId, archiveId: 'a1', disk, onProgress: ({ bytes }) => steps.push(bytes) })
    assert.equal(archive.id, 'a1')
    assert.match(archive.sha256, /^[0-9a-f]{64}$/)
    assert.ok(archive.bytes > 10_000_000 && archive.storedBytes < archive.bytes)
    assert.ok(steps.length >= 3)
    assert.equal(steps.at(-1), archive.bytes)
    assert.deepEqual(await findArchive(store, sandboxId, 'a1'), archive)
  })

  test('packing an unchanged disk again writes no chunk, and makes an equal archive', async () => {
    const again = watched(store)
    assert.deepEqual(await packDisk({ store: again.store, sandboxId, archiveId: 'a1', disk }), archive)
    assert.deepEqual(again.calls, [])
  })

  test('a restored disk equals the archived disk: content, owners, modes, times, attributes, holes, links', async () => {
    const directory = scratch.make('again')
    const done: number[] = []
    const onProgress = ({ bytes }: { bytes: number }) => done.push(bytes)
    await unpackDisk({ launcher, store, sandboxId, archive, disk: diskIn(directory), onProgress })
    const before = listDisk(scratch.at('disk'))
    assert.equal(withoutSockets(before).length, before.length - 1)
    assert.deepEqual(listDisk(directory), withoutSockets(before))
    assert.deepEqual(readdirSync(directory).sort(), ['etc', 'upper'])
    assert.equal(done.at(-1), archive.bytes)
  })

  test('an archive of a slightly changed disk adds few chunks, and survives the removal of older archives', async () => {
    writeFileSync(join(disk.upper, 'AAA-first'), 'a new file before all others')
    const second = watched(store)
    const newer = await packDisk({ store: second.store, sandboxId, archiveId: 'a2', disk })
    assert.ok(second.puts() >= 1 && second.puts() <= 3, `${second.puts()} chunks were written`)
    const all = await objects(store)
    await removeArchives({ store, sandboxId, keep: 'a2' })
    await removeArchives({ store, sandboxId, keep: 'a2' })
    const left = await objects(store)
    assert.ok(left.length < all.length)
    assert.equal(await findArchive(store, sandboxId, 'a1'), undefined)
    const directory = scratch.make('newer')
    await unpackDisk({ launcher, store, sandboxId, archive: newer, disk: diskIn(directory) })
    assert.deepEqual(listDisk(directory), withoutSockets(listDisk(scratch.at('disk'))))
  })

  test('archives of an image and a sandbox of the same name have no object of the store in common', async () => {
    const image = sandboxId
    const ofSandbox = await objects(store)
    const ofImage = () => Array.fromAsync(store.list(`images/${image}/`))
    const packed = await packDisk({ store, image, archiveId: 'a1', disk })
    assert.ok((await ofImage()).length >= 2)
    const directory = scratch.make('image')
    await unpackDisk({ launcher, store, image, archive: packed, disk: diskIn(directory) })
    assert.deepEqual(listDisk(directory), withoutSockets(listDisk(scratch.at('disk'))))
    await removeArchives({ store, image })
    assert.deepEqual(await ofImage(), [])
    assert.deepEqual(await objects(store), ofSandbox)
  })

  test('`removeArchives` removes nothing if the archive `keep` is missing, and all archives without `keep`', async () => {
    const all = await objects(store)
    await assert.rejects(removeArchives({ store, sandboxId, keep: 'a3' }), fails('missing', /must be kept is missing/))
    assert.deepEqual(await objects(store), all)
    await removeArchives({ store, sandboxId })
    await removeArchives({ store, sandboxId })
    assert.deepEqual(await objects(store), [])
  })
}

suite('an archive in a store that is a directory', { skip: needsRoot }, () => {
  const scratch = new Scratch()
  after(() => scratch[Symbol.dispose]())
  roundTrip(() => ({ kind: 'directory', path: scratch.at('store') }))
})

suite('an archive in a store in S3', { skip: needsRoot || withoutS3 }, () => {
  let s3: Awaited<ReturnType<typeof startS3>>
  before(async () => {
    s3 = await startS3('archives')
  })
  after(() => s3.stop())
  roundTrip(() => s3.address)
})

suite('a damaged archive', { skip: needsRoot }, () => {
  let scratch: Scratch
  let store: ObjectStore
  let root: string
  let disk: DiskParts
  let archive: Archive
  before(async () => {
    scratch = new Scratch()
    root = scratch.at('store')
    store = openStore({ kind: 'directory', path: root })
    disk = makeNastyDisk(scratch.at('disk'))
    archive = await packDisk({ store, sandboxId, archiveId: 'a1', disk })
  })
  after(() => scratch[Symbol.dispose]())

  /**
   * Damages one file of the object store with `harm` and checks that the archive cannot be unpacked. Then writes the undamaged
   * file again.
   */
  const harmed = async (path: string, harm: (path: string) => void, expected: (error: unknown) => boolean) => {
    const sound = readFileSync(path)
    const directory = scratch.make('harmed')
    try {
      harm(path)
      await assert.rejects(unpackDisk({ launcher, store, sandboxId, archive, disk: diskIn(directory) }), expected)
      assert.deepEqual(readdirSync(directory), [], 'something half was left')
    } finally {
      writeFileSync(path, sound)
      rmSync(directory, { recursive: true })
    }
  }
  const flip = (at: number) => (path: string) => {
    const content = readFileSync(path)
    content[at % content.length]! ^= 1
    writeFileSync(path, content)
  }

  test('unpacking an archive fails if one bit of a chunk has changed, and leaves no half-restored disk', async () => {
    const chunks = filesOf(root, 'chunks')
    assert.ok(chunks.length >= 3)
    for (const path of chunks) await harmed(path, flip(1000), fails('damaged', /^A part of the archive .* is damaged/))
  })

  test('unpacking an archive fails if a chunk is missing, and the error says so', async () => {
    await harmed(
      filesOf(root, 'chunks')[1]!,
      (path) => rmSync(path),
      fails('missing', /is missing in the archive store/),
    )
  })

  test('unpacking an archive fails if a chunk is too short, too large, or has the content of another chunk', async () => {
    const [one, other] = filesOf(root, 'chunks')
    await harmed(one!, (path) => truncateSync(path, 100), fails('damaged', /is damaged/))
    await harmed(
      one!,
      (path) => truncateSync(path, 64 * 1024 * 1024),
      fails('damaged', /one of its objects is larger than Alcove writes/),
    )
    await harmed(one!, (path) => writeFileSync(path, readFileSync(other!)), fails('damaged', /is damaged/))
  })

  test('unpacking an archive fails if its manifest is truncated, changed or missing', async () => {
    const [manifest] = filesOf(root, 'archives')
    const notWritten = fails('damaged', /its table of contents does not match/)
    await harmed(manifest!, (path) => truncateSync(path, 200), notWritten)
    await harmed(manifest!, flip(20), notWritten)
    await harmed(manifest!, (path) => rmSync(path), fails('missing', /The archive is missing/))
  })

  test('after damage to an archive, packing the disk again repairs the archive', async () => {
    const [one, two] = filesOf(root, 'chunks')
    flip(1000)(one!)
    rmSync(two!)
    assert.deepEqual(await packDisk({ store, sandboxId, archiveId: 'a1', disk }), archive)
    const directory = scratch.make('mended')
    await unpackDisk({ launcher, store, sandboxId, archive, disk: diskIn(directory) })
    assert.deepEqual(listDisk(directory), withoutSockets(listDisk(scratch.at('disk'))))
  })

  test('packing a disk fails if the store returns other bytes than were written to it', async () => {
    const lying = { ...bound(store), put: async () => {}, get: async () => Buffer.from('something') }
    const packing = packDisk({ store: lying, sandboxId, archiveId: 'a9', disk })
    await assert.rejects(packing, fails('damaged', /returned other data than was written to it/))
  })

  test('unpacking an archive never overwrites an existing disk', async () => {
    const there = listDisk(scratch.at('disk'))
    await assert.rejects(unpackDisk({ launcher, store, sandboxId, archive, disk }), fails('disk', /already has a disk/))
    assert.deepEqual(listDisk(scratch.at('disk')), there)
  })

  test('unpacking fails and leaves no disk if an archived link replaces `upper`, `etc` or a file in `etc`', async () => {
    const outside = scratch.make('outside')
    for (const hostile of ['upper', 'etc', 'etc/hosts', 'etc/image']) {
      const from = scratch.make(`hostile-${hostile.replace('/', '-')}`)
      for (const part of ['upper', 'etc']) if (part !== hostile) mkdirSync(join(from, part))
      symlinkSync(outside, join(from, hostile))
      const made = await packDisk({ store, sandboxId, archiveId: 'hostile', disk: diskIn(from) })
      const to = scratch.make('from-elsewhere')
      const unpacking = unpackDisk({ launcher, store, sandboxId, archive: made, disk: diskIn(to) })
      await assert.rejects(unpacking, fails('damaged', /contains a file that no disk of a sandbox can have/), hostile)
      assert.deepEqual(readdirSync(to), [])
    }
  })

  test('packing a disk is refused if the sandbox id or archive id would name a file outside of the store', async () => {
    for (const id of ['../other', '', 'a/b', '.', 'a\0b', 'x'.repeat(200)]) {
      await assert.rejects(packDisk({ store, sandboxId: id, archiveId: 'a1', disk }), TypeError)
      await assert.rejects(packDisk({ store, sandboxId, archiveId: id, disk }), TypeError)
    }
  })
})
