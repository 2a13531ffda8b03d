// Tests that images share the disk space of equal layers, but only of layers that the image's own registry has delivered.
import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, statfsSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { suite, test } from 'node:test'
import { unmountImagePool } from './image-pool.ts'
import type { Library } from './library.ts'
import { cannotRun, file, layer, libraryRoom, noise } from './testing/library-room.ts'
import { digestOf, makeImage } from './testing/oci-image.ts'

const isThere = existsSync('/usr/bin/btrfs') || existsSync('/usr/sbin/btrfs') || existsSync('/bin/btrfs')
const MiB = 1024 ** 2

suite('images that share layers', { skip: cannotRun || (isThere ? false : 'needs btrfs-progs') }, () => {
  const room = libraryRoom()
  const { openSharing, from, bring, read, below, rootfs, leavesNothing, parts } = room
  const trees = () => below('image-pool/trees')
  const treeOf = (library: Library, image: string) => basename(dirname(rootfs(library, image)))
  const layersOfBase = () => ['base', 'installed'].map((name) => layer({ path: name, content: randomBytes(8.5 * MiB) }))

  test('a layer that two images have in common is unpacked once and takes space on the disk once', async () => {
    const library = openSharing()
    const [base, installed] = layersOfBase() as [Buffer, Buffer]
    const own = (name: string) => makeImage({ layers: [base, installed, layer(file(name), file('d/.wh.none', ''))] })
    await bring(library, 'one', from(room.registry.put('x:1', own('a'))))
    // Images and disks are on two file systems, so no image file has the device and inode number of a disk's file.
    assert.notEqual(statSync(join(room.directory, 'pool/image-pool')).dev, statSync(join(room.directory, 'pool')).dev)
    const afterOne = library.stored().images
    room.registry.asked.length = 0
    await bring(library, 'two', from(room.registry.put('x:2', own('b'))))
    assert.ok(library.stored().images - afterOne < MiB, 'the second image takes only what its own layer has')
    assert.equal(room.registry.asked.filter((path) => path.includes('/blobs/')).length, 3)
    assert.deepEqual(
      ['a', 'b', 'base'].map((name) => existsSync(join(rootfs(library, 'two'), name))),
      [false, true, true],
    )
    // Image `three` shares only the lowest layer with the two earlier images.
    await bring(library, 'three', from(room.registry.put('x:3', makeImage({ layers: [base, layer(file('c'))] }))))
    assert.deepEqual(readdirSync(rootfs(library, 'three')).sort(), ['base', 'c'])
    assert.ok(library.stored().images - afterOne < MiB)
    // All layers of this image are also layers of earlier images, so its files are on this host already.
    await bring(library, 'lower', from(room.registry.put('x:4', makeImage({ layers: [base, installed] }))))
    assert.equal(read(library, 'lower', 'base').length, read(library, 'one', 'base').length)

    for (const image of ['one', 'lower', 'three']) await library.remove(image)
    assert.equal(read(library, 'two', 'b'), 'b')
    assert.ok(trees().includes(treeOf(library, 'two')))
    await library.remove('two')
    assert.deepEqual(trees(), [])
    leavesNothing()
    await library.close()
  })

  test('a stored layer is used for an image only if the image’s own repository also delivers this layer', async () => {
    const library = openSharing()
    const [secret, installed] = layersOfBase() as [Buffer, Buffer]
    const theirs = makeImage({ layers: [secret, installed] })
    await bring(library, 'theirs', from(room.registry.put('theirs:1', theirs)))
    const alone = library.stored().images
    const own = layer(file('own'))
    const same = makeImage({ layers: [secret, own] })
    const reference = room.registry.put('others:1', same)
    room.registry.onRequest = (path, answer) =>
      path === `/v2/others/blobs/${theirs.layers[0]}` ? { ...answer, status: 404, body: Buffer.from('{}') } : answer
    await assert.rejects(bring(library, 'same', from(reference)))
    room.registry.onRequest = (_path, answer) => answer
    // The attacker's image `forged` has a first layer of its own. For this layer, the image's configuration lists the diff id of
    // the layer `secret`.
    for (const layers of [[own], [own, layer(file('more'))]]) {
      const diffIds = [digestOf(secret), ...layers.slice(1).map(digestOf)]
      const forged = room.registry.put('others:forged', makeImage({ layers, diffIds }))
      await assert.rejects(bring(library, 'forged', from(forged)), { failure: 'corrupted' })
    }
    assert.deepEqual([library.list(), trees().filter((name) => name.startsWith('.'))], [['theirs'], []])

    await bring(library, 'same', from(reference))
    assert.deepEqual(readdirSync(rootfs(library, 'same')).sort(), ['base', 'own'])
    assert.ok(library.stored().images - alone < MiB)
    await library.close()
  })

  test('two images with equal layers share their files even if the layers are compressed in different ways', async () => {
    const library = openSharing()
    const layers = [layer(file('a', noise(100_000)))]
    await bring(library, 'gzip', from(room.registry.put('x:1', makeImage({ layers }))))
    const zstd = makeImage({ layers, layerKind: 'layer.v1.tar+zstd' })
    await bring(library, 'zstd', from(room.registry.put('y:1', zstd)))
    assert.equal(treeOf(library, 'zstd'), treeOf(library, 'gzip'))
    assert.equal(trees().length, 1)
    await library.close()
  })

  test('if a runner is killed while it unpacks layers, the next runner removes partial files and pulls again', async () => {
    const [base, installed] = layersOfBase() as [Buffer, Buffer]
    const reference = room.registry.put('x:1', makeImage({ layers: [base, installed, layer(file('own'))] }))
    const program =
      `import { Library } from ${JSON.stringify(import.meta.resolve('./library.ts'))}\n` +
      `import { silentLog } from ${JSON.stringify(import.meta.resolve('#src/kit/log.ts'))}\n` +
      `import { existsSync, readdirSync } from 'node:fs'\n` +
      `const parts = ${JSON.stringify(parts())}\n` +
      `const library = new Library({ ...parts, sharesLayers: true, log: silentLog() })\n` +
      // The process kills itself when the tree of the lowest layers is complete, while it unpacks the next layer.
      `const trees = parts.poolDir + '/image-pool/trees'\n` +
      `setInterval(() => existsSync(trees) && readdirSync(trees).some((name) => name[0] !== '.') && process.kill(process.pid, 'SIGKILL'), 1)\n` +
      `await library.bring({ image: 'one', source: { kind: 'registry', reference: '${reference}' }, maxGiB: 1 })`
    const child = spawn(process.execPath, ['--input-type=module', '-e', program], { stdio: 'inherit' })
    assert.equal(await new Promise((resolve) => child.once('close', (_code, by) => resolve(by))), 'SIGKILL')
    const library = openSharing()
    await library.open()
    assert.deepEqual([library.list(), trees(), below('image-work')], [[], [], []])
    await bring(library, 'one', from(reference))
    assert.equal(read(library, 'one', 'own'), 'own')
    await library.close()
  })

  test('a starting runner mounts the file system of images if it is not mounted', async () => {
    const first = openSharing()
    await bring(first, 'one', from(room.registry.put('x:1', makeImage({ layers: [layer(file('a', 'content'))] }))))
    await first.close()
    execFileSync('umount', [join(room.directory, 'pool/image-pool')])
    const second = openSharing()
    await second.openTrees()
    assert.equal(readFileSync(join(rootfs(second, 'one'), 'a'), 'utf8'), 'content')
    await second.close()
  })

  test('an image that fills the disk is refused, and its space is freed so that the next image fits', async () => {
    const pool = join(room.directory, 'pool')
    const zeros = Buffer.alloc(50e6)
    mkdirSync(pool)
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=300m', 'tmpfs', pool])
    try {
      const library = openSharing()
      await bring(library, 'one', from(room.registry.put('x:1', makeImage({ layers: [layer(file('a'))] }))))
      const contents = Array.from({ length: 6 }, (_, at) => ({ path: `zeros-${at}`, content: zeros }))
      const large = makeImage({ layers: [layer(...contents)] })
      const freeBytes = () => statfsSync(pool).bavail * statfsSync(pool).bsize
      const before = freeBytes()
      await assert.rejects(bring(library, 'large', from(room.registry.put('x:2', large))), { failure: 'no-room' })
      assert.ok(before - freeBytes() < 10e6, 'the host has the space again when the error is reported')
      const next = makeImage({ layers: [layer({ path: 'next', content: randomBytes(20e6) })] })
      await bring(library, 'next', from(room.registry.put('x:3', next)))
      assert.deepEqual([library.list(), read(library, 'one', 'a')], [['next', 'one'], 'a'])
      await library.close()
    } finally {
      await unmountImagePool(pool)
      // The unmount is lazy, because a copy of the mount in a different process keeps the loop device busy.
      execFileSync('umount', ['--lazy', pool])
    }
  })

  test('image files that an older version of the runner pulled stay in place, and new images use these files', async () => {
    const reference = room.registry.put('x:1', makeImage({ layers: [layer(file('a'))] }))
    const older = room.open()
    await bring(older, 'old', from(reference))
    const place = rootfs(older, 'old')
    const library = openSharing()
    assert.equal(rootfs(library, 'old'), place)
    await bring(library, 'new', from(reference))
    assert.equal(rootfs(library, 'new'), place)
    await bring(
      library,
      'more',
      from(room.registry.put('x:2', makeImage({ layers: [layer(file('a')), layer(file('b'))] }))),
    )
    assert.deepEqual([rootfs(library, 'old'), readdirSync(rootfs(library, 'more')).sort()], [place, ['a', 'b']])
    await library.close()
  })
})
