// Tests which files and layers of fetched images a host keeps, which images may use these files and layers, and when they are
// removed.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { suite, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { silentLog } from '#src/kit/log.ts'
import type { ImageSource } from '#src/wire/runner-link.ts'
import { needsRoot } from '#test/needs-root.ts'
import { ImageFailed } from './image-failed.ts'
import { Library } from './library.ts'
import { standardLimits } from './limits.ts'
import { digestOf, makeImage, type TestImage, tarOf, writeLayout } from './testing/oci-image.ts'
import { TestRegistry } from './testing/registry.ts'

const isThere = (command: string) => existsSync(`/usr/bin/${command}`)
const cannotRun = needsRoot || (['skopeo', 'umoci', 'crun'].every(isThere) ? false : 'needs skopeo, umoci, crun')

/** Makes a layer with one file that has `name` both as its name and as its content. */
const layer = (name: string) => tarOf([{ path: name, content: name }])

/** Opens a registry and a `Library` without images. */
const openRoom = async () => {
  // The directory is in memory if possible: on disk the test would be slow, because each image is synced.
  const directory = await mkdtemp(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'alcove-kept-'))
  const registry = await TestRegistry.start()
  const pool = (path: string) => join(directory, 'pool', path)
  const filesDir = join(directory, 'in')
  await mkdir(filesDir)
  const publicNetwork = () => Promise.reject(new Error('nothing here is on the Internet'))
  const library = new Library({
    poolDir: join(directory, 'pool'),
    filesDir,
    registries: { plainRegistries: [registry.host], authFile: undefined, publicNetwork },
    limits: { ...standardLimits, keepFreeBytes: 0, answerTimeoutMs: 30_000, timeoutMs: 120_000 },
    log: silentLog(),
  })
  const bring = (image: string, source: ImageSource) => library.bring({ image, source, maxGiB: 1 })
  const rootfs = (image: string) => library.rootfsOf(image) as string
  return {
    ...{ registry, library, pool, filesDir, bring, rootfs },
    put: (name: string, image: TestImage) => ({ kind: 'registry' as const, reference: registry.put(name, image) }),
    read: (image: string, path: string) => readFileSync(join(rootfs(image), path), 'utf8'),
    below: (path: string) => (existsSync(pool(path)) ? readdirSync(pool(path)) : []),
    [Symbol.asyncDispose]: async () => {
      await registry[Symbol.asyncDispose]()
      await rm(directory, { recursive: true, force: true })
    },
  }
}

suite('which images share files and downloaded layers on a runner', { skip: cannotRun }, () => {
  test('a caller who knows the digests of another repository’s image gets neither its files nor its layers', async () => {
    await using room = await openRoom()
    const { registry, library, put, bring, below } = room
    const theirs = makeImage({ layers: [layer('secret')] })
    await bring('theirs', put('theirs:1', theirs))
    registry.onRequest = (path, answer) =>
      path === `/v2/others/blobs/${theirs.layers[0]}` ? { ...answer, status: 404, body: Buffer.from('{}') } : answer
    // The attacker's repository `others` has two images that name the layer `secret`. The registry does not deliver this layer from
    // `others`.
    const same = put('others:same', theirs)
    const more = put('others:more', makeImage({ layers: [layer('secret'), layer('own')] }))
    await assert.rejects(bring('same', same), ImageFailed)
    await assert.rejects(bring('more', more), ImageFailed)
    assert.deepEqual([library.list(), below('image-trees').length, below('image-layers').length], [['theirs'], 1, 1])

    registry.onRequest = (_path, answer) => answer
    await bring('same', same)
    assert.equal(room.read('same', 'secret'), 'secret')
    // Once the attacker's repository delivers the layer `secret`, the images `same` and `theirs` share their files.
    assert.equal(room.rootfs('same'), room.rootfs('theirs'))
  })

  test('an image is refused if it gives its own layer the diff id of another repository’s layer', async () => {
    await using room = await openRoom()
    const { library, put, bring } = room
    const secret = layer('secret')
    await bring('theirs', put('theirs:1', makeImage({ layers: [secret] })))
    for (const layers of [[layer('own')], [layer('own'), layer('more')]]) {
      const diffIds = [digestOf(secret), ...layers.slice(1).map(digestOf)]
      const forged = put('others:forged', makeImage({ layers, diffIds }))
      await assert.rejects(bring('forged', forged), { failure: 'corrupted' })
    }
    assert.deepEqual(library.list(), ['theirs'])
  })

  test('an image is refused if its configuration describes more or fewer layers than the image has', async () => {
    await using room = await openRoom()
    const { put, bring, below } = room
    const [all, some] = [['a', 'b'].map(layer), [layer('a')]]
    const short = makeImage({ layers: some, diffIds: all.map(digestOf) })
    const long = makeImage({ layers: all, diffIds: some.map(digestOf) })
    writeLayout(short, join(room.filesDir, 'short'))
    const refused = (has: number, describes: number, source: ImageSource) =>
      assert.rejects(bring('one', source), {
        failure: 'corrupted',
        message: `The image is damaged: it has ${has} layers, and its configuration describes ${describes}.`,
      })
    await refused(1, 2, put('x:short', short))
    await refused(1, 2, { kind: 'file', path: 'short' })
    await refused(2, 1, put('x:long', long))
    assert.deepEqual(['images', 'image-trees', 'image-layers', 'image-work'].flatMap(below), [])
    await bring('one', put('x:1', makeImage({ layers: all })))
    assert.deepEqual([room.read('one', 'a'), room.read('one', 'b')], ['a', 'b'])
  })

  test('an image’s files that an older version of the runner unpacked are not shared with any other image', async () => {
    await using room = await openRoom()
    const { registry, library, pool, put, bring, below, rootfs } = room
    const image = makeImage({ layers: [layer('a')] })
    const tree = digestOf(JSON.stringify([digestOf(layer('a'))])).slice('sha256:'.length)
    const config = { entrypoint: [], env: {}, user: 'root', workdir: '/' }
    const known = { image: 'old', digest: image.digest, sizeBytes: 1, architecture: 'amd64', config }
    for (const path of [`image-trees/${tree}/rootfs`, 'images/old', 'image-layers'])
      await mkdir(pool(path), { recursive: true })
    await writeFile(pool(`image-trees/${tree}/tree.json`), '{"sizeBytes":1}')
    await writeFile(pool('images/old/image.json'), JSON.stringify({ ...known, tree, layers: image.layers }))
    await writeFile(pool(`image-layers/${image.layers[0]?.slice('sha256:'.length)}`), 'as they were called')

    const source = put('x:1', image)
    assert.deepEqual(await bring('old', source), known)
    assert.deepEqual([library.list(), registry.asked, below('image-layers')], [['old'], [], []])
    await bring('new', source)
    assert.deepEqual([rootfs('old'), room.read('new', 'a')], [pool(`image-trees/${tree}/rootfs`), 'a'])
    await library.remove('old')
    assert.equal(below('image-trees').includes(tree), false)
    await bring('old', source)
    assert.equal(rootfs('old'), rootfs('new'))
  })

  test('unneeded layers are removed even during a download, except layers of the image being downloaded', async () => {
    await using room = await openRoom()
    const { registry, library, put, bring, below } = room
    const [one, two] = [makeImage({ layers: ['a', 'b'].map(layer) }), makeImage({ layers: ['b', 'c'].map(layer) })]
    await bring('one', put('x:1', one))
    assert.equal(below('image-layers').length, 2)
    const isAsked = Promise.withResolvers<void>()
    const mayGoOn = Promise.withResolvers<void>()
    registry.onRequest = async (path, answer) => {
      if (!path.endsWith(two.layers[1] as string)) return answer
      isAsked.resolve()
      await mayGoOn.promise
      return answer
    }
    const bringing = bring('two', put('x:2', two))
    await isAsked.promise
    await library.remove('one')
    const names = below('image-layers')
    assert.deepEqual([names.length, names[0]?.endsWith(two.layers[0]?.slice(7) as string)], [1, true])
    mayGoOn.resolve()
    await bringing
    assert.equal(registry.asked.filter((path) => path.endsWith(two.layers[0] as string)).length, 1)
    assert.equal(below('image-layers').length, 2)
  })

  test('`remove` of an image removes its files even while the files of another image are being removed', async () => {
    await using room = await openRoom()
    const { library, put, bring, below, pool } = room
    for (const name of ['one', 'two']) await bring(name, put(`x:${name}`, makeImage({ layers: [layer(name)] })))
    const tree = basename(dirname(room.rootfs('one')))
    // The sweep after the removal of `one` also removes these 30,000 files, so this sweep is not over when `two` is removed.
    const many = 'mkdir "$0" && cd "$0" && seq 30000 | xargs touch'
    execFileSync('sh', ['-c', many, pool('image-trees/.old-many')])
    const removing = library.remove('one')
    while (below('image-trees').includes(tree)) await delay(1)
    await Promise.all([removing, library.remove('two')])
    assert.deepEqual(['images', 'image-trees', 'image-layers'].flatMap(below), [])
  })
})
