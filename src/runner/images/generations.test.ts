import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, suite, test } from 'node:test'
import { silentLog } from '#src/kit/log.ts'
import { needsRoot } from '#test/needs-root.ts'
import type { buildImage } from './build.ts'
import { type Recipe, recipeHash } from './recipe.ts'
import { type ImageStoreOptions, openImageStore } from './store.ts'

const recipe: Recipe = {
  sources: { suite: 'test', lines: [] },
  packages: [],
  nodePackages: [],
  steps: [],
  description: { user: 'daytona', env: { LANG: 'C.UTF-8' } },
}

const publicNetwork = () => Promise.reject(new Error('nothing here is on the Internet'))
const hour = 3_600_000
const none: ReadonlySet<string> = new Set()

suite('generations (versions) of the default image', { skip: needsRoot }, () => {
  let directory: string
  let built: number
  let now: number

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'alcove-generations-'))
    built = 0
    now = Date.now()
  })
  afterEach(() => rm(directory, { recursive: true, force: true }))

  /** Replaces the real build in these tests: makes an image with one file, which contains the number of builds so far. */
  const build: typeof buildImage = async ({ target, root }) => {
    const from = await mkdtemp(join(directory, 'made-'))
    await writeFile(join(from, 'made'), String(++built))
    execFileSync('sh', ['-ec', 'tar -C "$0" -c made | zstd -q -f -o "$1"; cp -a "$0/made" "$2"', from, target, root])
  }
  const open = (more: Partial<ImageStoreOptions> = {}) =>
    openImageStore({
      poolDir: join(directory, 'pool'),
      cacheDir: join(directory, 'cache'),
      publicNetwork,
      log: silentLog(),
      onProgress: () => {},
      now: () => now,
      recipe,
      build,
      ...more,
    })
  const opened = async (more?: Partial<ImageStoreOptions>) => {
    const store = open(more)
    await store.ensureDefault()
    return store
  }
  type Store = ReturnType<typeof openImageStore>
  const renew = (store: Store, steps: string[] = []) =>
    store.renewDefault(new Date(Date.now() + 1000), ({ step }) => steps.push(step))
  const madeIn = async (store: Store, image: string) => readFile(`${store.rootfsOf(image)}/made`, 'utf8')
  const namesInPool = async () => (await readdir(join(directory, 'pool/images'))).sort()
  const namesInCache = async () => (await readdir(join(directory, 'cache'))).filter((name) => !name.endsWith('.lock'))

  test('after a renewal of the default image, new disks use the new image, and older disks the old image', async () => {
    const store = await opened()
    assert.equal(store.newest('default'), 'default')
    await renew(store)
    assert.equal(store.newest('default'), 'default.2')
    assert.deepEqual([await madeIn(store, 'default'), await madeIn(store, 'default.2')], ['1', '2'])
    assert.deepEqual(store.list(), ['default'])
    assert.equal(store.newest('another'), 'another')
    const next = await opened()
    assert.deepEqual([next.newest('default'), built], ['default.2', 2])
  })

  test('a replaced default image is removed after one hour, if no disk and no image uses it', async () => {
    const store = await opened()
    await store.bringBase({ image: 'mine', source: { kind: 'image', image: 'default' }, maxGiB: 1 })
    await store.complete('mine', { entrypoint: [], cmd: [], env: {}, user: '', workdir: '/' })
    await renew(store)
    await renew(store)
    now += hour - 1
    assert.deepEqual(await store.removeReplaced(none), [])
    now += 1
    assert.deepEqual(await store.removeReplaced(new Set(['default.2'])), [])
    assert.deepEqual(await store.removeReplaced(none), ['default.2'])
    assert.equal(await madeIn(store, 'mine'), '1')
    await store.remove('mine')
    assert.deepEqual(await store.removeReplaced(none), ['default'])
    assert.deepEqual(await namesInPool(), ['default.3'])
  })

  test('a disk whose version of the default image is missing on this host uses the newest version', async () => {
    const store = await opened()
    await renew(store)
    now += hour
    await store.removeReplaced(none)
    assert.deepEqual([await madeIn(store, 'default'), await madeIn(store, 'default.9')], ['2', '2'])
    assert.deepEqual([store.list(), store.configOf('default')?.user], [['default'], 'daytona'])
    const next = await opened()
    assert.deepEqual([await madeIn(next, 'default'), built], ['2', 2])
  })

  test('if a build of the default image fails, the old default image stays in use, and no new file is left', async () => {
    const store = await opened()
    const before = [await namesInPool(), await namesInCache()]
    const failing = open({
      build: async ({ target }) => {
        await writeFile(target, 'half')
        throw new Error('no network')
      },
    })
    await assert.rejects(renew(failing), /no network/)
    assert.deepEqual([await namesInPool(), await namesInCache()], before)
    assert.equal(await madeIn(store, store.newest('default')), '1')
  })

  test('the second runner on a host uses the default image that the first runner has built', async () => {
    const first = await opened()
    const second = await opened({ poolDir: join(directory, 'second') })
    await renew(first)
    await second.renewDefault(new Date(now - hour), () => {})
    assert.deepEqual([await madeIn(second, 'default.2'), built], ['2', 2])
  })

  test('if a runner is killed while it builds the default image, the next runner uses the old image', async () => {
    await opened()
    const before = [await namesInPool(), await namesInCache()]
    const program = `
      import { writeFileSync, mkdirSync } from 'node:fs'
      import { openImageStore } from ${JSON.stringify(import.meta.resolve('./store.ts'))}
      import { silentLog } from ${JSON.stringify(import.meta.resolve('#src/kit/log.ts'))}
      const die = () => process.kill(process.pid, 'SIGKILL')
      const build = async ({ target, root, workDir }) => {
        mkdirSync(workDir)
        for (const file of [workDir + '/half', root + '/half', target]) writeFileSync(file, 'half')
        die()
      }
      const options = ${JSON.stringify({ poolDir: join(directory, 'pool'), cacheDir: join(directory, 'cache'), recipe })}
      await openImageStore({ ...options, build, log: silentLog(), onProgress() {} }).renewDefault(new Date(Date.now() + 1000), () => {})`
    const child = spawn(process.execPath, ['--input-type=module', '-e', program], { stdio: 'inherit' })
    const [, signal] = (await once(child, 'close')) as [number, string]
    assert.equal(signal, 'SIGKILL')
    const store = await opened()
    assert.deepEqual([await namesInPool(), await namesInCache()], before)
    assert.equal(await madeIn(store, store.newest('default')), '1')
  })

  test('`defaultAge` returns when the newest default image was built, and whether its recipe is up to date', async () => {
    const store = await opened()
    assert.deepEqual(store.defaultAge(), { madeAt: new Date(now), isOfThisRecipe: true })
    const other = { ...recipe, packages: ['more'] }
    assert.notEqual(recipeHash(other), recipeHash(recipe))
    const next = await opened({ recipe: other })
    assert.equal(next.defaultAge()?.isOfThisRecipe, false)
    now += hour
    await renew(next)
    assert.deepEqual(next.defaultAge(), { madeAt: new Date(now), isOfThisRecipe: true })
  })
})
