import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync, lstatSync, readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs'
import { chmod, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, suite, test } from 'node:test'
import { silentLog } from '#src/kit/log.ts'
import type { ImageSource } from '#src/wire/runner-link.ts'
import { needsRoot } from '#test/needs-root.ts'
import { ImageFailed, type ImageFailure } from './image-failed.ts'
import { type BringRequest, Library } from './library.ts'
import { type ImageLimits, standardLimits } from './limits.ts'
import { makeBusy } from './testing/busy.ts'
import { digestOf, makeImage, makeIndex, type TarEntry, tarOf, writeLayout } from './testing/oci-image.ts'
import { TestRegistry } from './testing/registry.ts'

const isThere = (command: string) => existsSync(`/usr/bin/${command}`)
const cannotRun = needsRoot || (['skopeo', 'umoci', 'crun'].every(isThere) ? false : 'needs skopeo, umoci, crun')

const publicNetwork = () => Promise.reject(new Error('nothing here is on the Internet'))
const shift = 165_536
const file = (path: string, content = path, more: Partial<TarEntry> = {}): TarEntry => ({ path, content, ...more })
const layer = (...entries: TarEntry[]) => tarOf(entries)
const noise = (bytes: number) => randomBytes(bytes).toString('latin1')

suite('images from registries and files', { skip: cannotRun }, () => {
  let directory: string
  let registry: TestRegistry
  const limits: ImageLimits = { ...standardLimits, keepFreeBytes: 0, answerTimeoutMs: 30_000, timeoutMs: 120_000 }

  beforeEach(async () => {
    // In memory where that is possible: other tests keep the disk busy, and each image is synced to it.
    directory = await mkdtemp(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'alcove-library-'))
    await mkdir(join(directory, 'in'))
    registry = await TestRegistry.start()
  })
  afterEach(async () => {
    await registry[Symbol.asyncDispose]()
    await rm(directory, { recursive: true, force: true })
  })

  const parts = (more: Partial<ImageLimits> = {}) => ({
    poolDir: join(directory, 'pool'),
    filesDir: join(directory, 'in'),
    registries: { plainRegistries: [registry.host], authFile: undefined, publicNetwork },
    limits: { ...limits, ...more },
  })
  const open = (more: Partial<ImageLimits> = {}) => new Library({ ...parts(more), log: silentLog() })
  const from = (reference: string): ImageSource => ({ kind: 'registry', reference })
  const bring = (library: Library, image: string, source: ImageSource, more: Partial<BringRequest> = {}) =>
    library.bring({ image, source, maxGiB: 1, ...more })
  const fails = async (failure: ImageFailure, message: RegExp, promise: Promise<unknown>) => {
    await assert.rejects(promise, (error: unknown) => {
      assert.ok(error instanceof ImageFailed, String(error))
      assert.equal(error.failure, failure, `${error.message} ${error.cause}`)
      assert.match(error.message, message)
      return true
    })
    leavesNothing()
  }
  const below = (name: string) => {
    const path = join(directory, 'pool', name)
    return existsSync(path) ? readdirSync(path) : []
  }
  const leavesNothing = () =>
    assert.deepEqual(['images', 'image-trees', 'image-work', 'image-layers'].map(below), [[], [], [], []])
  const rootfs = (library: Library, image: string) => library.rootfsOf(image) as string
  const read = (library: Library, image: string, path: string) =>
    readFileSync(join(rootfs(library, image), path), 'utf8')

  test('a tag is resolved once; the digest is answered and stays when the tag moves', async () => {
    const first = makeImage({
      layers: [layer(file('a', 'old', { uid: 1000, gid: 7 }))],
      config: { User: '1000:7', Env: ['PATH=/bin', 'A=b=c'], WorkingDir: '/srv', Entrypoint: ['/a'], Cmd: ['x'] },
    })
    const second = makeImage({ layers: [layer(file('a', 'new'))] })
    const reference = registry.put('x/y:1', first)
    const library = open()
    const brought = await bring(library, 'one', from(reference))
    assert.deepEqual(
      { ...brought, sizeBytes: brought.sizeBytes > 0 },
      {
        image: 'one',
        digest: first.digest,
        sizeBytes: true,
        architecture: process.arch === 'x64' ? 'amd64' : process.arch,
        config: { entrypoint: ['/a', 'x'], env: { PATH: '/bin', A: 'b=c' }, user: '1000', workdir: '/srv' },
      },
    )
    const { uid, gid } = statSync(join(rootfs(library, 'one'), 'a'))
    assert.deepEqual([uid, gid], [shift + 1000, shift + 7])

    registry.put('x/y:1', second)
    assert.equal((await bring(library, 'one', from(reference))).digest, first.digest)
    const pinned = await bring(library, 'again', from(`${registry.host}/x/y@${first.digest}`))
    const moved = await bring(library, 'moved', from(reference))
    assert.deepEqual([pinned.digest, moved.digest], [first.digest, second.digest])
    assert.deepEqual([read(library, 'again', 'a'), read(library, 'moved', 'a')], ['old', 'new'])
    assert.deepEqual(open().list(), ['again', 'moved', 'one'])
  })

  test('layers lie on each other: what is deleted is gone, owners, modes and links are kept', async () => {
    const image = makeImage({
      layers: [
        layer(
          { path: 'd', type: '5' },
          ...['d/kept', 'd/gone', 'opaque/old'].map((path) => file(path)),
          file('tool', 'x', { mode: 0o4755, uid: 5 }),
          { path: 'twin', type: '1', target: 'tool' },
          { path: 'link', type: '2', target: '/etc/passwd' },
        ),
        layer(file('d/.wh.gone', ''), file('opaque/.wh..wh..opq', ''), file('opaque/new')),
      ],
    })
    const library = open()
    await bring(library, 'one', from(registry.put('x:1', image)))
    const root = rootfs(library, 'one')
    assert.deepEqual([readdirSync(join(root, 'd')), readdirSync(join(root, 'opaque'))], [['kept'], ['new']])
    const tool = statSync(join(root, 'tool'))
    assert.deepEqual([tool.mode & 0o7777, tool.uid, tool.nlink], [0o4755, shift + 5, 2])
    assert.equal(readlinkSync(join(root, 'link')), '/etc/passwd')
  })

  test('of an index the image for this machine, and the digest of the index', async () => {
    const [ours, other] = ['ours', 'other'].map((name) => makeImage({ layers: [layer(file(name))] }))
    assert.ok(ours && other)
    const architecture = process.arch === 'x64' ? 'amd64' : process.arch
    const index = makeIndex([
      { image: other, os: 'linux', architecture: 's390x' },
      { image: ours, os: 'linux', architecture },
    ])
    const library = open()
    const brought = await bring(library, 'one', from(registry.put('multi:1', index, ours, other)))
    assert.equal(brought.digest, index.digest)
    assert.ok(existsSync(join(rootfs(library, 'one'), 'ours')))
  })

  test('what is for another machine is refused before it is downloaded', async () => {
    const other = makeImage({ layers: [layer(file('a'))], architecture: 's390x' })
    const index = makeIndex([{ image: other, os: 'linux', architecture: 's390x' }])
    const library = open()
    const sentence = /^The image is for linux\/s390x; this runner is linux\//
    await fails('wrong-architecture', sentence, bring(library, 'one', from(registry.put('other:1', other))))
    await fails('wrong-architecture', sentence, bring(library, 'one', from(registry.put('other:2', index, other))))
    assert.ok(!registry.asked.some((path) => other.layers.some((digest) => path.endsWith(digest))))
  })

  test('the same wanted twice is downloaded once, and its files are shared', async () => {
    const image = makeImage({ layers: [layer(file('a'), file('big', noise(300_000)))] })
    const reference = registry.put('x:1', image)
    const library = open()
    const progress: number[] = []
    await Promise.all([
      bring(library, 'one', from(reference), { onProgress: ({ percent }) => progress.push(percent) }),
      bring(library, 'one', from(reference)),
      bring(library, 'two', from(reference)),
    ])
    const downloads = () => registry.asked.filter((path) => path.endsWith(image.layers[0] as string)).length
    assert.equal(downloads(), 1)
    assert.ok(progress.length > 1 && progress.every((percent) => percent >= 0 && percent < 100))
    await bring(library, 'three', from(registry.put('x:renamed', image)))
    assert.equal(downloads(), 1)
    assert.equal(rootfs(library, 'one'), rootfs(library, 'three'))
    assert.equal(below('image-trees').length, 1)
  })

  test('a layer that another image of its repository has is not downloaded again', async () => {
    const common = layer(file('common', noise(200_000)))
    const [one, two] = ['one', 'two'].map((name) => makeImage({ layers: [common, layer(file(name))] }))
    assert.ok(one && two)
    const library = open()
    await bring(library, 'one', from(registry.put('x:one', one)))
    await bring(library, 'two', from(registry.put('x:two', two)))
    assert.equal(registry.asked.filter((path) => path.endsWith(one.layers[0] as string)).length, 1)
    assert.ok(['common', 'two'].every((name) => existsSync(join(rootfs(library, 'two'), name))))
  })

  test('removed images take along what only they had', async () => {
    const common = layer(file('common'))
    const [one, two] = ['one', 'two'].map((name) => makeImage({ layers: [common, layer(file(name))] }))
    assert.ok(one && two)
    const library = open()
    await bring(library, 'one', from(registry.put('x:one', one)))
    await bring(library, 'alias', from(`${registry.host}/x@${one.digest}`))
    await bring(library, 'two', from(registry.put('x:two', two)))
    await library.remove('one')
    assert.deepEqual([library.list(), library.rootfsOf('one')], [['alias', 'two'], undefined])
    assert.equal(read(library, 'alias', 'one'), 'one')
    assert.equal(below('image-layers').length, 3)
    await library.remove('alias')
    await library.remove('alias')
    assert.deepEqual([below('image-trees').length, below('image-layers').length], [1, 2])
    await library.remove('two')
    leavesNothing()
  })

  test('downloaded layers are kept within their bound; images need none of them', async () => {
    const library = open({ keptLayersBytes: 1 })
    await bring(library, 'one', from(registry.put('one:1', makeImage({ layers: [layer(file('a'))] }))))
    assert.deepEqual([below('image-layers'), read(library, 'one', 'a')], [[], 'a'])
  })

  suite('is refused in a sentence and leaves nothing:', () => {
    test('what does not exist', async () => {
      const reference = `${registry.host}/no/such:1`
      await fails(
        'not-found',
        /^There is no image 127\.0\.0\.1:\d+\/no\/such:1\.$/,
        bring(open(), 'one', from(reference)),
      )
    })

    test('a registry that wants credentials', async () => {
      const reference = registry.put('x:1', makeImage({ layers: [] }))
      registry.onRequest = (_path, answer) => ({ ...answer, status: 401, body: Buffer.from('{}') })
      await fails('refused', /wants credentials/, bring(open(), 'one', from(reference)))
    })

    test('a registry that is down', async () => {
      const { host } = registry
      const library = open()
      await registry[Symbol.asyncDispose]()
      await fails(
        'unreachable',
        /^The registry 127\.0\.0\.1:\d+ does not answer/,
        bring(library, 'one', from(`${host}/x:1`)),
      )
      registry = await TestRegistry.start()
    })

    test('a registry that never answers', async () => {
      const reference = registry.put('x:1', makeImage({ layers: [] }))
      registry.onRequest = () => new Promise(() => {})
      await fails('took-too-long', /within 1 s/, bring(open({ answerTimeoutMs: 1000 }), 'one', from(reference)))
    })

    test('a registry that the operator has not listed, and one whose number is not public', async () => {
      const registries = {
        plainRegistries: [registry.host],
        authFile: undefined,
        publicNetwork,
        registries: ['ghcr.io'],
      }
      const library = new Library({ ...parts(), registries, log: silentLog() })
      await fails('refused', /docker\.io are not allowed/, bring(library, 'one', from('alpine')))
      for (const host of ['10.1.2.3:5000', '169.254.169.254', '192.168.1.1'])
        await fails('refused', /not on the public Internet/, bring(open(), 'one', from(`${host}/x:1`)))
      assert.deepEqual(registry.asked, [])
      assert.ok(await bring(library, 'one', from(registry.put('x:1', makeImage({ layers: [] })))))
    })

    test('a registry of this machine that nobody allowed', async () => {
      const library = new Library({
        ...parts(),
        registries: { plainRegistries: [], authFile: undefined, publicNetwork },
        log: silentLog(),
      })
      await fails(
        'refused',
        /operator of this server has to allow it/,
        bring(library, 'one', from(`${registry.host}/x:1`)),
      )
      assert.deepEqual(registry.asked, [])
    })

    test('a layer, a configuration or a manifest that is not what its digest says', async () => {
      const image = makeImage({ layers: [layer(file('a', noise(5000)))] })
      const other = makeImage({ layers: [layer(file('b'))] })
      registry.put('x:1', image, other)
      const config = JSON.parse(image.manifest.toString()).config.digest as string
      for (const [wrong, body] of [
        [image.layers[0], Buffer.from(other.blobs.get(other.layers[0] as string) as Buffer)],
        [config, Buffer.from('{}')],
        [image.digest, other.manifest],
      ] as const) {
        registry.onRequest = (path, answer) => (path.endsWith(wrong as string) ? { ...answer, body } : answer)
        await fails('corrupted', /is damaged/, bring(open(), 'one', from(`${registry.host}/x@${image.digest}`)))
      }
    })

    test('a layer that unpacks to something else than its configuration says', async () => {
      const layers = [layer(file('a')), layer(file('b'))]
      // What is unpacked has to be the one at its place, not one of them.
      const image = makeImage({ layers, diffIds: layers.map(digestOf).reverse() })
      await fails('corrupted', /could not be unpacked/, bring(open(), 'one', from(registry.put('x:1', image))))
    })

    test('a manifest that is not one', async () => {
      const reference = registry.put('x:1', makeImage({ layers: [] }))
      const type = 'application/vnd.oci.image.manifest.v1+json'
      for (const text of [
        '[]',
        '{',
        '{"config":{},"layers":[]}',
        '{"config":{"digest":"sha256:../../etc","size":1}}',
      ]) {
        registry.onRequest = (path, answer) =>
          path.includes('/manifests/') ? { status: 200, type, body: Buffer.from(text) } : answer
        await fails('corrupted', /damaged/, bring(open(), 'one', from(reference)))
      }
    })

    test('what cannot be unpacked here: other kinds of layers, users that sandboxes do not have', async () => {
      const zstd = makeImage({ layers: [layer(file('a'))], layerKind: 'layer.v1.tar+zstd' })
      await fails('unsupported', /not supported \(.*zstd\)/, bring(open(), 'one', from(registry.put('x:1', zstd))))
      const high = makeImage({ layers: [layer(file('a', 'a', { uid: 70_000 }))] })
      await fails('unsupported', /users above 65535/, bring(open(), 'one', from(registry.put('x:2', high))))
    })

    test('too many layers', async () => {
      const image = makeImage({ layers: Array.from({ length: 128 }, (_, at) => layer(file(`f${at}`))) })
      await fails('too-many-layers', /128 layers; 127/, bring(open(), 'one', from(registry.put('x:1', image))))
    })

    test('what is too large packed, before it is downloaded', async () => {
      const image = makeImage({ layers: [layer(file('a', noise(3_000_000)))] })
      const library = open({ largestBytes: 1000 })
      await fails(
        'too-large',
        /its layers have .* and may have 1000 bytes/,
        bring(library, 'one', from(registry.put('x:1', image))),
      )
      assert.ok(!registry.asked.some((path) => path.endsWith(image.layers[0] as string)))
    })

    test('what is too large unpacked: one file, and many', async () => {
      const zeros = (count: number, bytes: number) =>
        makeImage({ layers: [layer(...Array.from({ length: count }, (_, at) => file(`z${at}`, '\0'.repeat(bytes))))] })
      const library = open({ largestBytes: 16 * 1024 * 1024 })
      await fails('too-large', /more than 16 MiB/, bring(library, 'one', from(registry.put('x:1', zeros(1, 32e6)))))
      await fails('too-large', /more than 16 MiB/, bring(library, 'one', from(registry.put('x:2', zeros(16, 4e6)))))
    })

    test('too many files', async () => {
      const entries = Array.from({ length: 6000 }, (_, at) => file(`d${at % 100}/${at}`, ''))
      const image = makeImage({ layers: [layer(...entries)] })
      const library = open({ mostFiles: 5000 })
      await fails('too-many-files', /more than 5000 files/, bring(library, 'one', from(registry.put('x:1', image))))
    })

    test('names that are none', async () => {
      for (const name of ['', 'UPPER', 'a b', 'x:', 'x@sha256:12', '../x', 'docker://x', '-x', 'a//b', 'x:1/../..'])
        await fails('invalid-reference', /is not the name of an image/, bring(open(), 'one', from(name)))
      await assert.rejects(bring(open(), '../one', from('x')), ImageFailed)
    })

    test('files outside of the directory for them', async () => {
      writeLayout(makeImage({ layers: [layer(file('a'))] }), join(directory, 'outside'))
      await symlink(join(directory, 'outside'), join(directory, 'in/link'))
      for (const path of ['../outside', 'link', join(directory, 'outside'), '.', '', 'none', 'a\0b', '/etc'])
        await fails('not-found', /^There is no /, bring(open(), 'one', { kind: 'file', path }))
    })
  })

  test('a hostile layer reaches nothing outside, and no device is made', async () => {
    const victim = join(directory, 'victim')
    await writeFile(victim, 'untouched')
    const inside = (path: string) => file(path, 'hostile')
    const image = makeImage({
      layers: [
        layer(
          { path: 'etc', type: '5' },
          { path: 'out', type: '2', target: directory },
          { path: 'up', type: '2', target: '../../../../../../../../..' },
          inside('out/victim'),
          inside(`up${victim}`),
          inside(`/absolute`),
          inside('../../../../../../../../../../climbed'),
          { path: 'null', type: '3', mode: 0o666 },
          { path: 'disk', type: '4', mode: 0o666 },
          { path: 'hard', type: '1', target: 'absolute' },
        ),
        layer(inside('out/victim'), inside(`up${victim}`), file('su', 'x', { mode: 0o6755 })),
      ],
    })
    const library = open()
    const outcome = await bring(library, 'one', from(registry.put('x:1', image))).then(
      () => 'brought',
      (error: ImageFailed) => error.failure,
    )
    assert.equal(readFileSync(victim, 'utf8'), 'untouched')
    assert.ok(!existsSync('/climbed') && !existsSync('/absolute'))
    assert.equal(outcome, 'brought')
    const found = execFileSync('find', [rootfs(library, 'one'), '-type', 'b', '-o', '-type', 'c', '-o', '-uid', '0'])
    assert.equal(found.toString(), '')
    assert.equal(lstatSync(join(rootfs(library, 'one'), 'su')).uid, shift)
  })

  test('an OCI layout, an archive of one, and what docker save writes', async () => {
    const image = makeImage({ layers: [layer(file('a'))], config: { User: 'app' } })
    const layout = join(directory, 'in/layout')
    writeLayout(image, layout)
    const convert = (to: string) =>
      execFileSync('skopeo', ['--insecure-policy', 'copy', '-q', `oci:${layout}`, to], { stdio: 'pipe' })
    convert(`oci-archive:${join(directory, 'in/archive.tar')}`)
    convert(`docker-archive:${join(directory, 'in/saved.tar')}:x:1`)
    for (const name of ['archive.tar', 'saved.tar']) await chmod(join(directory, 'in', name), 0o644)
    const library = open()
    for (const path of ['layout', 'archive.tar', 'saved.tar']) {
      const { config } = await bring(library, path, { kind: 'file', path })
      assert.deepEqual([config.user, read(library, path, 'a')], ['app', 'a'])
    }
    assert.equal(below('image-trees').length, 1)
  })

  test('a definition changes what an image says of itself, and shares its files', async () => {
    const base = makeImage({ layers: [layer(file('a'))], config: { Env: ['PATH=/bin'], Cmd: ['sh'] } })
    const reference = registry.put('x:1', base)
    const library = open()
    const dockerfile = `FROM ${reference}\nENV PATH=$PATH:/opt/bin\nWORKDIR /srv\nWORKDIR app\nUSER app\nENTRYPOINT ["/a"]\n`
    const { config, digest } = await bring(library, 'one', { kind: 'definition', dockerfile })
    assert.deepEqual(config, { entrypoint: ['/a'], env: { PATH: '/bin:/opt/bin' }, user: 'app', workdir: '/srv/app' })
    assert.equal(digest, base.digest)
    await bring(library, 'two', from(reference))
    assert.equal(rootfs(library, 'one'), rootfs(library, 'two'))
  })

  test('who no longer wants it leaves the work to the others; when all have left it ends', async () => {
    const reference = registry.put('x:1', makeImage({ layers: [layer(file('a'))] }))
    const asked = Promise.withResolvers<void>()
    const goOn = Promise.withResolvers<void>()
    registry.onRequest = async (_path, answer) => {
      asked.resolve()
      await goOn.promise
      return answer
    }
    const library = open()
    const leaving = new AbortController()
    const left = bring(library, 'one', from(reference), { signal: leaving.signal })
    const staying = bring(library, 'two', from(reference))
    await asked.promise
    leaving.abort()
    await assert.rejects(left, { failure: 'cancelled' })
    goOn.resolve()
    await staying
    assert.deepEqual(library.list(), ['two'])
    await library.remove('two')

    const again = Promise.withResolvers<void>()
    registry.onRequest = () => {
      again.resolve()
      return new Promise(() => {})
    }
    const alone = new AbortController()
    const cancelled = bring(library, 'one', from(reference), { signal: alone.signal })
    await again.promise
    alone.abort()
    await fails('cancelled', /cancelled/, cancelled)
  })

  test('killed while it downloads or unpacks, the next runner begins with nothing half done', async () => {
    const big = noise(500_000)
    const image = makeImage({ layers: [layer(...Array.from({ length: 8 }, (_, at) => file(`f${at}`, big)))] })
    const reference = registry.put('x:1', image)
    const program = (step: string) =>
      `import { Library } from ${JSON.stringify(import.meta.resolve('./library.ts'))}\n` +
      `import { silentLog } from ${JSON.stringify(import.meta.resolve('#src/kit/log.ts'))}\n` +
      `const library = new Library({ ...${JSON.stringify(parts())}, log: silentLog() })\n` +
      `const onProgress = ({ step }) => { if (step === '${step}') setTimeout(() => process.kill(process.pid, 'SIGKILL'), 40) }\n` +
      `await library.bring({ image: 'one', source: { kind: 'registry', reference: '${reference}' }, maxGiB: 1, onProgress })`
    for (const step of ['asking the registry', 'downloading', 'unpacking']) {
      if (step === 'downloading')
        registry.onRequest = (path, answer) =>
          path.endsWith(image.layers[0] as string) ? new Promise(() => {}) : answer
      else registry.onRequest = (_path, answer) => answer
      const child = spawn(process.execPath, ['--input-type=module', '-e', program(step)], { stdio: 'inherit' })
      const signal = await new Promise((resolve) => child.once('close', (_code, by) => resolve(by)))
      assert.equal(signal, 'SIGKILL', step)
      const library = open()
      assert.deepEqual(library.list(), [])
      await library.open()
      assert.deepEqual([below('images'), below('image-trees'), below('image-work')], [[], [], []])
    }
    const library = open()
    await bring(library, 'one', from(reference))
    assert.equal(read(library, 'one', 'f7'), big)
  })

  test('one whose paths are as long as paths can be leaves with the last image that has it', async () => {
    const deep = `${'d'.repeat(199)}/`.repeat(20)
    const reference = registry.put('x:1', makeImage({ layers: [layer(file(`${deep}f`))] }))
    const library = open()
    await bring(library, 'one', from(reference))
    await library.remove('one')
    leavesNothing()
    // As a runner leaves it that is killed meanwhile.
    for (const place of ['image-trees/.old', 'image-work'])
      execFileSync('sh', [
        '-c',
        `mkdir -p "$0" && cd "$0" && mkdir -p ${deep} && cd ${deep} && mkdir -p ${deep}`,
        join(directory, 'pool', place),
      ])
    await open().open()
    leavesNothing()
  })

  test('opening has patience with what a killed runner’s program still holds', async () => {
    using _ = makeBusy(join(directory, 'pool/image-work/of-a-killed-one'))
    await open().open()
    assert.deepEqual(below('image-work'), [])
  })

  test('a disk that becomes full leaves nothing, and the next one finds room', async () => {
    await mkdir(join(directory, 'pool'))
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=8m', 'tmpfs', join(directory, 'pool')])
    try {
      const zeros = file('zeros', '\0'.repeat(16e6))
      const library = open()
      const large = registry.put('x:1', makeImage({ layers: [layer(zeros)] }))
      await fails('no-room', /^The disk that the runner keeps images on is full\.$/, bring(library, 'one', from(large)))
      const packed = registry.put('x:2', makeImage({ layers: [layer(file('noise', noise(10e6)))] }))
      await fails('no-room', /is full/, bring(library, 'one', from(packed)))
      await bring(library, 'one', from(registry.put('x:3', makeImage({ layers: [layer(file('a'))] }))))
    } finally {
      execFileSync('umount', [join(directory, 'pool')])
    }
  })
})
