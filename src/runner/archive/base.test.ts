// Tests how the files of base images get from one host to another through the object store. Needs root.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { silentLog } from '#src/kit/log.ts'
import { needsRoot } from '#test/needs-root.ts'
import { type BaseIdentity, nameOfContent } from '../images/base-identity.ts'
import { ImageFailed } from '../images/image-failed.ts'
import { standardLimits } from '../images/limits.ts'
import { type ImageStore, openImageStore } from '../images/store.ts'
import { builtLauncher } from '../testing/test-host.ts'
import { hashFiles, storeBase } from './base.ts'
import { travelThrough } from './bases.ts'
import { removeArchives } from './remove.ts'
import { type ObjectStore, openStore } from './store.ts'
import { bound } from './testing/archives.ts'
import { Scratch } from './testing/disks.ts'

const hour = 3_600_000

suite('base images that move between hosts through the store', { skip: needsRoot }, () => {
  const scratch = new Scratch()
  const launcher = builtLauncher()
  let store: ObjectStore
  let one: ImageStore
  let gets: string[]
  let puts = 0
  let hours = 0

  const watched = (): ObjectStore => ({
    ...bound(store),
    get: (key, most, signal) => {
      gets.push(key)
      return store.get(key, most, signal)
    },
    put: (key, content, signal) => {
      puts += 1
      return store.put(key, content, signal)
    },
  })
  const open = (name: string, more: object = {}): ImageStore =>
    openImageStore({
      poolDir: scratch.at(name),
      cacheDir: scratch.at('cache'),
      log: silentLog(),
      onProgress: () => {},
      publicNetwork: () => Promise.reject(new Error('nothing here is on the Internet')),
      limits: { ...standardLimits, keepFreeBytes: 0 },
      now: () => Date.now() + hours * hour,
      travel: travelThrough(watched(), launcher, true),
      ...more,
    })
  /** Makes a host. A file in its default image contains the name of the host, so that tests can tell images apart. */
  const host = async (name: string, more: object = {}, generation = 'default') => {
    const image = scratch.make(`${name}/images/${generation}`)
    mkdirSync(join(image, 'rootfs/etc'), { recursive: true })
    writeFileSync(join(image, 'rootfs/etc/version'), `${name} ${generation}`)
    writeFileSync(join(image, 'rootfs/tool'), 'x', { mode: 0o755 })
    const description = { user: 'daytona', env: { MADE: name } }
    writeFileSync(
      join(image, 'image.json'),
      JSON.stringify({ recipe: 'r', description, madeAt: new Date(Date.now()).toISOString() }),
    )
    const images = open(name, more)
    await images.openTrees()
    return images
  }
  const transfer = () => ({ signal: AbortSignal.timeout(60_000), onProgress: () => {} })
  const identityOf = async (images: ImageStore, image = 'default'): Promise<BaseIdentity> => {
    const identity = await images.identityOf(image)
    assert.ok(identity)
    return identity
  }
  const versionIn = (images: ImageStore, image: string) =>
    readFileSync(join(images.rootfsOf(image) ?? '', 'etc/version'), 'utf8')
  const bring = (images: ImageStore, identity: BaseIdentity) =>
    images.withBase(identity, transfer(), async (image) => image)
  const says = (message: RegExp) => (error: unknown) => error instanceof ImageFailed && message.test(error.message)
  const isEmpty = (name: string) =>
    ['image-trees', 'image-work'].every((part) => readdirSync(scratch.at(`${name}/${part}`)).length === 0)

  before(async () => {
    gets = []
    store = openStore({ kind: 'directory', path: scratch.at('store') })
    one = await host('one')
  })
  after(async () => {
    await store.close()
    scratch[Symbol.dispose]()
  })

  test('a host that has fetched the base of a disk still makes new sandboxes from its own default image', async () => {
    const identity = await identityOf(one)
    let changes = 0
    const two = await host('two', { onBases: () => changes++ })
    const image = await bring(two, identity)
    assert.deepEqual([versionIn(two, image), versionIn(two, 'default')], ['one default', 'two default'])
    assert.deepEqual(two.configOf(image), one.configOf('default'))
    assert.deepEqual([two.bases(), changes], [one.bases(), 1])
    assert.deepEqual(two.list(), ['default'])
    // The build on host two begins from the fetched base image, so the build gets the files of that image.
    const source = { kind: 'image', image } as const
    const { files } = await two.bringBase({ image: 'stage', source, maxGiB: 1 })
    assert.deepEqual([versionIn(two, 'stage'), files.includes('default')], ['one default', false])
    await two.remove('stage')
    // When the disk moves to a third host, or back to the first, it has the same base image.
    assert.deepEqual(await identityOf(two, image), identity)
    gets = []
    assert.equal(versionIn(one, await bring(one, identity)), 'one default')
    assert.deepEqual(gets, [])
  })

  test('twenty simultaneous restores fetch their base from the store once; later restores fetch nothing', async () => {
    const identity = await identityOf(one)
    const three = await host('three')
    gets = []
    const images = await Promise.all(Array.from({ length: 20 }, () => bring(three, identity)))
    assert.equal(new Set(images).size, 1)
    assert.equal(new Set(gets).size, gets.length)
    const reopened = open('three')
    gets = []
    assert.deepEqual([await bring(reopened, identity), gets], [images[0], []])
  })

  test('a base from the store whose manifest or files do not match its name is refused and leaves no files', async () => {
    const identity = await identityOf(one)
    const name = nameOfContent(identity.content!)
    const four = await host('four')
    const path = scratch.at(`store/images/${name}/archives/base.json`)
    const whole = readFileSync(path)
    mkdirSync(scratch.at('evil/rootfs'), { recursive: true })
    writeFileSync(scratch.at('evil/rootfs/tool'), 'evil')
    const sha256 = await hashFiles(scratch.at('evil/rootfs'))
    const evil = { sha256, salt: '0'.repeat(32) }
    await storeBase({ store, content: evil, rootfs: scratch.at('evil/rootfs') })
    const other = nameOfContent(evil)
    cpSync(scratch.at(`store/images/${other}/chunks`), scratch.at(`store/images/${name}/chunks`), { recursive: true })
    const manifest = JSON.parse(readFileSync(scratch.at(`store/images/${other}/archives/base.json`), 'utf8'))
    for (const [changes, why] of [
      [{ image: name }, /do not match its hash/],
      [{ image: name, sha256: identity.content!.sha256 }, /do not match its hash/],
      [{}, /that of another archive/],
    ] as const) {
      writeFileSync(path, JSON.stringify({ ...manifest, ...changes }))
      await assert.rejects(bring(four, identity), says(why))
    }
    writeFileSync(path, 'no manifest')
    await assert.rejects(bring(four, identity), says(/is damaged/))
    assert.deepEqual([isEmpty('four'), four.bases()], [true, []])
    writeFileSync(path, whole)
    assert.equal(versionIn(four, await bring(four, identity)), 'one default')
    await removeArchives({ store, image: other })
  })

  test('a restore fails, with the reason, if the disk’s base is neither on the host nor in the store', async () => {
    const five = await host('five', { travel: travelThrough(store, launcher, false) })
    const identity = await identityOf(five)
    await assert.rejects(bring(one, identity), says(/not in the archive store/))
    const { content: _, ...everywhere } = identity
    const digest = `sha256:${'a'.repeat(64)}`
    await assert.rejects(bring(one, { ...everywhere, digest }), says(/another version of its base image/))
  })

  test('if a runner dies while fetching a base, the next runner removes incomplete files and fetches again', async () => {
    const identity = await identityOf(one)
    const six = await host('six')
    await six.bring({ image: 'empty', source: { kind: 'scratch' } as never, maxGiB: 1 })
    const options = {
      poolDir: scratch.at('six'),
      cacheDir: scratch.at('cache'),
      limits: { ...standardLimits, keepFreeBytes: 0 },
    }
    const script = `
      import { mkdirSync, writeFileSync } from 'node:fs'
      import { openImageStore } from ${JSON.stringify(import.meta.resolve('../images/store.ts'))}
      import { silentLog } from ${JSON.stringify(import.meta.resolve('#src/kit/log.ts'))}
      const bring = ({ rootfs }) => {
        mkdirSync(rootfs)
        writeFileSync(rootfs + '/half', '')
        console.log('half')
        return new Promise(() => setInterval(() => {}, 1000))
      }
      const images = openImageStore({ ...${JSON.stringify(options)}, log: silentLog(), onProgress() {}, travel: { bring } })
      await images.withBase(${JSON.stringify(identity)}, { signal: new AbortController().signal, onProgress() {} }, () => {})`
    const child = spawn(process.execPath, ['--input-type=module', '--eval', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    await once(child.stdout, 'data')
    child.kill('SIGKILL')
    await once(child, 'close')
    assert.ok(readdirSync(scratch.at('six/image-trees')).some((name) => name.startsWith('.new-')))
    const next = open('six')
    assert.equal(versionIn(next, await bring(next, identity)), 'one default')
    assert.ok(!readdirSync(scratch.at('six/image-trees')).some((name) => name.startsWith('.')))
  })

  test('a base fetched from the store is removed after an hour, unless a disk or a running restore uses it', async () => {
    const identity = await identityOf(one)
    let changes = 0
    const seven = await host('seven', { onBases: () => changes++ })
    const image = await bring(seven, identity)
    assert.deepEqual(await seven.removeReplaced(new Set()), [])
    hours = 2
    assert.deepEqual(await seven.removeReplaced(new Set([image])), [])
    await seven.withBase(identity, transfer(), async () => assert.deepEqual(await seven.removeReplaced(new Set()), []))
    changes = 0
    hours = 4
    assert.deepEqual(await seven.removeReplaced(new Set()), [image])
    assert.deepEqual([changes, seven.bases(), isEmpty('seven')], [1, [], true])
    hours = 0
  })

  test('after `images renew`, the old default image keeps its identity; the new image has another identity', async () => {
    const eight = await host('eight')
    const older = await identityOf(eight)
    const renewed = await host('eight', {}, 'default.2')
    assert.deepEqual(await identityOf(renewed, 'default'), older)
    const newer = await identityOf(renewed, 'default.2')
    assert.notEqual(nameOfContent(newer.content!), nameOfContent(older.content!))
    assert.equal(versionIn(renewed, await bring(renewed, older)), 'eight default')
    hours = 48
    // The older default image is not removed, because the image of a restored disk uses its files.
    const image = await bring(renewed, older)
    assert.deepEqual(await renewed.removeReplaced(new Set([image])), [])
    assert.ok(existsSync(scratch.at('eight/images/default/rootfs')))
    hours = 0
  })

  test('a registry image is identified by its digest, and the image of a Dockerfile by its files', async () => {
    const eleven = await host('eleven')
    await eleven.bring({ image: 'empty', source: { kind: 'scratch' } as never, maxGiB: 1 })
    const stored = JSON.parse(readFileSync(scratch.at('eleven/images/empty/image.json'), 'utf8'))
    const record = (image: string, more: object) => {
      scratch.make(`eleven/images/${image}`)
      writeFileSync(scratch.at(`eleven/images/${image}/image.json`), JSON.stringify({ ...stored, image, ...more }))
    }
    const digest = `sha256:${'d'.repeat(64)}`
    record('pulled', { digest })
    record('built', { digest })
    await eleven.complete('built', { entrypoint: [], cmd: [], env: {}, user: '', workdir: '' })
    const pulled = await identityOf(eleven, 'pulled')
    assert.deepEqual([pulled.digest, pulled.tree, pulled.content], [digest, undefined, undefined])
    const built = await identityOf(eleven, 'built')
    assert.deepEqual([built.tree, built.content === undefined], [stored.tree, false])
    // The host `eleven` has the files of both images, so `bring` fetches nothing from the object store. Each image that `bring`
    // returns has the identity that the test passed to `bring`.
    gets = []
    const [below, other] = [await bring(eleven, pulled), await bring(eleven, built)]
    assert.deepEqual([gets, eleven.rootfsOf(below)], [[], eleven.rootfsOf('pulled')])
    assert.deepEqual([await identityOf(eleven, below), await identityOf(eleven, other)], [pulled, built])
  })

  test('an image made of a copy of a base image’s files has another identity than the base image', async () => {
    const nine = await host('nine')
    await nine.bring({ image: 'empty', source: { kind: 'scratch' } as never, maxGiB: 1 })
    const identity = await identityOf(nine, 'empty')
    assert.ok(identity.tree && identity.content)
    const trees = scratch.at('nine/image-trees')
    const copy = 'f'.repeat(64)
    cpSync(join(trees, identity.tree), join(trees, copy), { recursive: true })
    const record = scratch.at('nine/images/empty/image.json')
    const stored = JSON.parse(readFileSync(record, 'utf8'))
    mkdirSync(scratch.at('nine/images/other'))
    writeFileSync(scratch.at('nine/images/other/image.json'), JSON.stringify({ ...stored, image: 'other', tree: copy }))
    const other = await identityOf(open('nine'), 'other')
    assert.notEqual(other.content?.salt, identity.content.salt)
    assert.equal(other.tree, copy)
  })

  test('a base image that the store has lost is stored again, but not if its files have changed', async () => {
    const ten = await host('ten')
    const identity = await identityOf(ten)
    const image = nameOfContent(identity.content!)
    const manifest = scratch.at(`store/images/${image}/archives/base.json`)
    await removeArchives({ store, image })
    assert.deepEqual(await identityOf(ten), identity)
    assert.ok(existsSync(manifest))
    await removeArchives({ store, image })
    const rootfs = ten.rootfsOf('default') ?? ''
    renameSync(join(rootfs, 'tool'), join(rootfs, 'other'))
    await assert.rejects(identityOf(ten), /on this host have changed/)
    assert.ok(!existsSync(manifest))
  })

  test('if twenty disks are stored at the same time, their common base is put into the store once', async () => {
    const twelve = await host('twelve')
    puts = 0
    const identities = await Promise.all(Array.from({ length: 20 }, () => identityOf(twelve)))
    assert.equal(new Set(identities.map((identity) => nameOfContent(identity.content!))).size, 1)
    assert.equal(puts, 2)
  })

  test('base images are hashed one at a time', async () => {
    let running = 0
    const most: number[] = []
    const hash = async (rootfs: string) => {
      most.push(++running)
      const sha256 = await hashFiles(rootfs)
      running -= 1
      return sha256
    }
    const travel = { ...travelThrough(store, launcher, true), hash }
    await host('thirteen', { travel })
    const thirteen = await host('thirteen', { travel }, 'default.2')
    await Promise.all(['default', 'default.2'].map((image) => identityOf(thirteen, image)))
    assert.deepEqual(most, [1, 1])
  })

  test('base images are not put into an archive store that is on the host’s own disk', async () => {
    const alone = await host('alone', { travel: travelThrough(store, launcher, false) })
    const { content } = await identityOf(alone)
    assert.ok(!existsSync(scratch.at(`store/images/${nameOfContent(content!)}`)))
  })
})
