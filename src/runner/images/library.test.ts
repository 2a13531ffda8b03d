import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { getEventListeners } from 'node:events'
import { existsSync, lstatSync, readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs'
import { chmod, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { freeBytes } from '#src/kit/file-system.ts'
import { silentLog } from '#src/kit/log.ts'
import { GivenBack } from './given-back.ts'
import type { ImageFailed } from './image-failed.ts'
import { Library } from './library.ts'
import { makeBusy } from './testing/busy.ts'
import { cannotRun, file, layer, libraryRoom, noise } from './testing/library-room.ts'
import { digestOf, makeImage, makeIndex, writeLayout } from './testing/oci-image.ts'

const shift = 165_536

suite('images from registries and files', { skip: cannotRun }, () => {
  const room = libraryRoom()
  const { open, from, bring, fails, below, leavesNothing, rootfs, read, parts } = room

  test('an image’s tag is resolved once: the image stays the same even if the tag later names another image', async () => {
    const first = makeImage({
      layers: [layer(file('a', 'old', { uid: 1000, gid: 7 }))],
      config: { User: '1000:7', Env: ['PATH=/bin', 'A=b=c'], WorkingDir: '/srv', Entrypoint: ['/a'], Cmd: ['x'] },
    })
    const second = makeImage({ layers: [layer(file('a', 'new'))] })
    const reference = room.registry.put('x/y:1', first)
    const library = open()
    const brought = await bring(library, 'one', from(reference))
    assert.deepEqual(
      { ...brought, sizeBytes: brought.sizeBytes > 0 },
      {
        image: 'one',
        digest: first.digest,
        sizeBytes: true,
        architecture: process.arch === 'x64' ? 'amd64' : process.arch,
        config: { entrypoint: ['/a', 'x'], env: { PATH: '/bin', A: 'b=c' }, user: '1000:7', workdir: '/srv' },
      },
    )
    const { uid, gid } = statSync(join(rootfs(library, 'one'), 'a'))
    assert.deepEqual([uid, gid], [shift + 1000, shift + 7])

    room.registry.put('x/y:1', second)
    assert.equal((await bring(library, 'one', from(reference))).digest, first.digest)
    const pinned = await bring(library, 'again', from(`${room.registry.host}/x/y@${first.digest}`))
    const moved = await bring(library, 'moved', from(reference))
    assert.deepEqual([pinned.digest, moved.digest], [first.digest, second.digest])
    assert.deepEqual([read(library, 'again', 'a'), read(library, 'moved', 'a')], ['old', 'new'])
    assert.deepEqual(open().list(), ['again', 'moved', 'one'])
  })

  test('an image’s layers are unpacked in order: deleted files are gone; owners, modes and links are kept', async () => {
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
    await bring(library, 'one', from(room.registry.put('x:1', image)))
    const root = rootfs(library, 'one')
    assert.deepEqual([readdirSync(join(root, 'd')), readdirSync(join(root, 'opaque'))], [['kept'], ['new']])
    const tool = statSync(join(root, 'tool'))
    assert.deepEqual([tool.mode & 0o7777, tool.uid, tool.nlink], [0o4755, shift + 5, 2])
    assert.equal(readlinkSync(join(root, 'link')), '/etc/passwd')
  })

  test('if an image has variants for several processors, the runner’s variant is fetched', async () => {
    const [ours, other] = ['ours', 'other'].map((name) => makeImage({ layers: [layer(file(name))] }))
    assert.ok(ours && other)
    const architecture = process.arch === 'x64' ? 'amd64' : process.arch
    const index = makeIndex([
      { image: other, os: 'linux', architecture: 's390x' },
      { image: ours, os: 'linux', architecture },
    ])
    const library = open()
    const brought = await bring(library, 'one', from(room.registry.put('multi:1', index, ours, other)))
    assert.equal(brought.digest, index.digest)
    assert.ok(existsSync(join(rootfs(library, 'one'), 'ours')))
  })

  test('an image for another processor architecture is refused before it is downloaded', async () => {
    const other = makeImage({ layers: [layer(file('a'))], architecture: 's390x' })
    const index = makeIndex([{ image: other, os: 'linux', architecture: 's390x' }])
    const library = open()
    const sentence = /^The image is for linux\/s390x; this runner is linux\//
    await fails('wrong-architecture', sentence, bring(library, 'one', from(room.registry.put('other:1', other))))
    await fails('wrong-architecture', sentence, bring(library, 'one', from(room.registry.put('other:2', index, other))))
    assert.ok(!room.registry.asked.some((path) => other.layers.some((digest) => path.endsWith(digest))))
  })

  test('an image requested three times at the same time is downloaded once, and its files are shared', async () => {
    const image = makeImage({ layers: [layer(file('a'), file('big', noise(300_000)))] })
    const reference = room.registry.put('x:1', image)
    const library = open()
    const progress: number[] = []
    await Promise.all([
      bring(library, 'one', from(reference), { onProgress: ({ percent }) => progress.push(percent) }),
      bring(library, 'one', from(reference)),
      bring(library, 'two', from(reference)),
    ])
    const downloads = () => room.registry.asked.filter((path) => path.endsWith(image.layers[0] as string)).length
    assert.equal(downloads(), 1)
    assert.ok(progress.length > 1 && progress.every((percent) => percent >= 0 && percent < 100))
    await bring(library, 'three', from(room.registry.put('x:renamed', image)))
    assert.equal(downloads(), 1)
    assert.equal(rootfs(library, 'one'), rootfs(library, 'three'))
    assert.equal(below('image-trees').length, 1)
  })

  test('a layer that an earlier image of the same repository has is not downloaded again', async () => {
    const common = layer(file('common', noise(200_000)))
    const [one, two] = ['one', 'two'].map((name) => makeImage({ layers: [common, layer(file(name))] }))
    assert.ok(one && two)
    const library = open()
    await bring(library, 'one', from(room.registry.put('x:one', one)))
    await bring(library, 'two', from(room.registry.put('x:two', two)))
    assert.equal(room.registry.asked.filter((path) => path.endsWith(one.layers[0] as string)).length, 1)
    assert.ok(['common', 'two'].every((name) => existsSync(join(rootfs(library, 'two'), name))))
  })

  test('removing an image also removes its files if no other image uses them', async () => {
    const common = layer(file('common'))
    const [one, two] = ['one', 'two'].map((name) => makeImage({ layers: [common, layer(file(name))] }))
    assert.ok(one && two)
    const library = open()
    await bring(library, 'one', from(room.registry.put('x:one', one)))
    await bring(library, 'alias', from(`${room.registry.host}/x@${one.digest}`))
    await bring(library, 'two', from(room.registry.put('x:two', two)))
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

  test('layers beyond the limit `keptLayersBytes` are removed; images unpacked from them still work', async () => {
    const library = open({ keptLayersBytes: 1 })
    await bring(library, 'one', from(room.registry.put('one:1', makeImage({ layers: [layer(file('a'))] }))))
    assert.deepEqual([below('image-layers'), read(library, 'one', 'a')], [[], 'a'])
  })

  test('downloaded layers are removed if the disk has too little free space for the next image', async () => {
    const reference = room.registry.put('one:1', makeImage({ layers: [layer(file('a'))] }))
    await bring(open(), 'one', from(reference))
    assert.equal(below('image-layers').length, 1)
    const library = open({ keepFreeBytes: Math.floor((await freeBytes(room.directory)) / 2) })
    await library.open()
    assert.deepEqual([below('image-layers'), read(library, 'one', 'a')], [[], 'a'])
    await bring(library, 'two', from(room.registry.put('two:1', makeImage({ layers: [layer(file('b'))] }))))
    assert.equal(read(library, 'two', 'b'), 'b')
  })

  test('layers kept after downloads are removed when the disk fills, and the removed bytes are counted', async () => {
    const { limits, ...rest } = parts()
    const givenBack = new GivenBack()
    const library = new Library({ ...rest, limits, givenBack, log: silentLog() })
    const content = noise(300_000)
    const { sizeBytes } = await bring(
      library,
      'one',
      from(room.registry.put('one:1', makeImage({ layers: [layer(file('a', content))] }))),
    )
    await library.relieve()
    const { layers } = library.stored()
    assert.deepEqual([below('image-layers').length, givenBack.read().layers?.pressure], [1, undefined])
    assert.ok(layers > 300_000, String(layers))
    assert.equal(library.stored().images, sizeBytes)
    limits.keepFreeBytes = await freeBytes(room.directory)
    await library.relieve()
    assert.deepEqual([below('image-layers'), library.stored()], [[], { images: sizeBytes, layers: 0 }])
    assert.deepEqual([givenBack.read().layers?.pressure, givenBack.read().images], [layers, undefined])
    await library.remove('one')
    assert.deepEqual([givenBack.read().layers?.pressure, givenBack.read().images], [layers, { unused: sizeBytes }])
    assert.deepEqual(library.stored(), { images: 0, layers: 0 })
  })

  test('files and layers that two images share count once in the stored bytes', async () => {
    const library = open()
    const reference = room.registry.put('x:1', makeImage({ layers: [layer(file('a', noise(100_000)))] }))
    const { sizeBytes } = await bring(library, 'one', from(reference))
    const { layers } = library.stored()
    await bring(library, 'two', from(reference))
    assert.deepEqual(library.stored(), { images: sizeBytes, layers })
    // A new library on this directory, as after a restart, reports the same sizes as soon as it is open.
    const next = open()
    await next.open()
    assert.deepEqual(next.stored(), { images: sizeBytes, layers })
  })

  test('an image layer with hostile paths writes nothing outside its image, and makes no device', async () => {
    const victim = join(room.directory, 'victim')
    await writeFile(victim, 'untouched')
    const inside = (path: string) => file(path, 'hostile')
    const image = makeImage({
      layers: [
        layer(
          { path: 'etc', type: '5' },
          { path: 'out', type: '2', target: room.directory },
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
    const outcome = await bring(library, 'one', from(room.registry.put('x:1', image))).then(
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

  test('an image can be read from an OCI layout, an OCI archive and the output of `docker save`', async () => {
    const image = makeImage({ layers: [layer(file('a'))], config: { User: 'app' } })
    const layout = join(room.directory, 'in/layout')
    writeLayout(image, layout)
    const convert = (to: string) =>
      execFileSync('skopeo', ['--insecure-policy', 'copy', '-q', `oci:${layout}`, to], { stdio: 'pipe' })
    convert(`oci-archive:${join(room.directory, 'in/archive.tar')}`)
    convert(`docker-archive:${join(room.directory, 'in/saved.tar')}:x:1`)
    for (const name of ['archive.tar', 'saved.tar']) await chmod(join(room.directory, 'in', name), 0o644)
    const library = open()
    for (const path of ['layout', 'archive.tar', 'saved.tar']) {
      const { config } = await bring(library, path, { kind: 'file', path })
      assert.deepEqual([config.user, read(library, path, 'a')], ['app', 'a'])
    }
    assert.equal(below('image-trees').length, 1)
  })

  test('a build’s base image is listed only after the build; a pull of the same image uses the same files', async () => {
    const base = makeImage({
      layers: [layer(file('a'))],
      config: { Cmd: ['sh'], Shell: ['/bash'], OnBuild: ['RUN b'] },
    })
    const reference = room.registry.put('x:1', base)
    const library = open()
    const { container, digest } = await library.bringBase({ image: 'one', source: from(reference), maxGiB: 1 })
    assert.deepEqual(
      [container.cmd, container.shell, container.onbuild, digest],
      [['sh'], ['/bash'], ['RUN b'], base.digest],
    )
    assert.deepEqual([library.list(), library.find('one')], [[], undefined])
    await library.complete('one', { ...container, user: 'app', workdir: '/srv', cmd: ['/a'], entrypoint: [] })
    assert.deepEqual(library.find('one')?.config, { entrypoint: ['/a'], env: {}, user: 'app', workdir: '/srv' })
    await bring(library, 'two', from(reference))
    assert.equal(rootfs(library, 'one'), rootfs(library, 'two'))
    await library.bringBase({ image: 'left', source: { kind: 'scratch' }, maxGiB: 1 })
    assert.deepEqual(readdirSync(rootfs(library, 'left')), [])
    const next = open()
    await next.open()
    assert.deepEqual([next.list(), next.rootfsOf('left')], [['one', 'two'], undefined])
  })

  test('an image’s user ids above 65535 are recorded for that image, and for images that are built on it', async () => {
    const image = makeImage({
      layers: [
        layer(
          file('a', 'a', { uid: 2_000_000, gid: 95_607 }),
          file('b', 'b', { gid: 1_000_660_000 }),
          { path: 'c', type: '2', target: 'a', uid: 3_000_000 },
          file('d', 'd', { uid: 4_000_000 }),
        ),
        layer(file('.wh.d', '')),
      ],
    })
    const library = open()
    const reference = room.registry.put('x:1', image)
    await bring(library, 'one', from(reference))
    const ids = [2_000_000, 3_000_000, 1_000_660_000]
    assert.deepEqual(library.largeIdsOf('one'), ids)
    assert.deepEqual(Object.keys(library.find('one') ?? {}).includes('largeIds'), false)
    await library.bringBase({ image: 'base', source: from(reference), maxGiB: 1, largeIds: [7_000_000, 2_000_000] })
    assert.deepEqual(library.largeIdsOf('base'), [...ids, 7_000_000])
    await library.bringBase({ image: 'next', source: { kind: 'image', image: 'base' }, maxGiB: 1 })
    assert.deepEqual(library.largeIdsOf('next'), [...ids, 7_000_000])
    assert.deepEqual(library.largeIdsOf('none'), [])
    // The host may have users with these ids, so the directory of image files must be closed to everybody but root.
    const trees = join(room.directory, 'pool/image-trees')
    assert.equal(statSync(trees).mode & 0o777, 0o700)
  })

  test('image layers compressed with zstd are verified by their digests, like layers compressed with gzip', async () => {
    const layers = [layer(file('a'), file('big', noise(300_000))), layer(file('b'))]
    const image = makeImage({ layers, layerKind: 'layer.v1.tar+zstd' })
    const library = open()
    const known = await bring(library, 'one', from(room.registry.put('x:1', image)))
    assert.equal(known.digest, image.digest)
    assert.deepEqual([read(library, 'one', 'a'), read(library, 'one', 'b')], ['a', 'b'])
    // Image `two` has the same files as image `one`, but its layers are compressed with gzip.
    await bring(library, 'two', from(room.registry.put('x:2', makeImage({ layers }))))
    assert.equal(rootfs(library, 'one'), rootfs(library, 'two'))
    const lying = makeImage({
      layers: [layer(file('c'))],
      layerKind: 'layer.v1.tar+zstd',
      diffIds: [digestOf('other')],
    })
    await assert.rejects(bring(library, 'three', from(room.registry.put('x:3', lying))), { failure: 'corrupted' })
    const bomb = makeImage({ layers: [layer(file('zeros', '0'.repeat(40_000_000)))], layerKind: 'layer.v1.tar+zstd' })
    const small = { maxGiB: 0.01 }
    await assert.rejects(bring(library, 'four', from(room.registry.put('x:4', bomb)), small), { failure: 'too-large' })
  })

  test('an image download that several callers share continues until all of them have cancelled', async () => {
    const reference = room.registry.put('x:1', makeImage({ layers: [layer(file('a'))] }))
    const asked = Promise.withResolvers<void>()
    const goOn = Promise.withResolvers<void>()
    room.registry.onRequest = async (_path, answer) => {
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
    room.registry.onRequest = () => {
      again.resolve()
      return new Promise(() => {})
    }
    const alone = new AbortController()
    const cancelled = bring(library, 'one', from(reference), { signal: alone.signal })
    await again.promise
    alone.abort()
    await fails('cancelled', /cancelled/, cancelled)
  })

  test('an image or an ADD that is queued behind other downloads ends at once if it is cancelled', async () => {
    const asked = Promise.withResolvers<void>()
    room.registry.onRequest = () => {
      asked.resolve()
      return new Promise(() => {})
    }
    const library = open({ atOnce: 1 })
    const busy = new AbortController()
    const running = bring(library, 'one', from(`${room.registry.host}/x:1`), { signal: busy.signal })
    running.catch(() => {})
    await asked.promise
    const leaving = new AbortController()
    const { signal } = leaving
    const queued = bring(library, 'two', from(`${room.registry.host}/y:1`), { signal })
    const url = `http://${room.registry.host}/file`
    const added = library.withWebFile({ url, mostBytes: 1, signal }, async () => assert.fail('nothing was sent'))
    while (getEventListeners(signal, 'abort').length < 2) await setImmediate()
    leaving.abort()
    await Promise.all([assert.rejects(queued, { failure: 'cancelled' }), assert.rejects(added, { name: 'AbortError' })])
    busy.abort()
    await fails('cancelled', /cancelled/, running)
  })

  test('if a runner is killed while it downloads or unpacks an image, the next runner removes partial files', async () => {
    const big = noise(500_000)
    const image = makeImage({ layers: [layer(...Array.from({ length: 8 }, (_, at) => file(`f${at}`, big)))] })
    const reference = room.registry.put('x:1', image)
    const program = (step: string) =>
      `import { Library } from ${JSON.stringify(import.meta.resolve('./library.ts'))}\n` +
      `import { silentLog } from ${JSON.stringify(import.meta.resolve('#src/kit/log.ts'))}\n` +
      `const library = new Library({ ...${JSON.stringify(parts())}, log: silentLog() })\n` +
      `const onProgress = ({ step }) => { if (step === '${step}') setTimeout(() => process.kill(process.pid, 'SIGKILL'), 40) }\n` +
      `await library.bring({ image: 'one', source: { kind: 'registry', reference: '${reference}' }, maxGiB: 1, onProgress })`
    for (const step of ['asking the registry', 'downloading', 'unpacking']) {
      if (step === 'downloading')
        room.registry.onRequest = (path, answer) =>
          path.endsWith(image.layers[0] as string) ? new Promise(() => {}) : answer
      else room.registry.onRequest = (_path, answer) => answer
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

  test('an image whose files have the longest possible paths can be removed', async () => {
    const deep = `${'d'.repeat(199)}/`.repeat(20)
    const reference = room.registry.put('x:1', makeImage({ layers: [layer(file(`${deep}f`))] }))
    const library = open()
    await bring(library, 'one', from(reference))
    await library.remove('one')
    leavesNothing()
    // Creates long paths in the directories in which a killed runner may leave files.
    for (const place of ['image-trees/.old', 'image-work'])
      execFileSync('sh', [
        '-c',
        `mkdir -p "$0" && cd "$0" && mkdir -p ${deep} && cd ${deep} && mkdir -p ${deep}`,
        join(room.directory, 'pool', place),
      ])
    await open().open()
    leavesNothing()
  })

  test('a new runner removes partial image files of a killed runner, even if they are busy at first', async () => {
    using _ = makeBusy(join(room.directory, 'pool/image-work/of-a-killed-one'))
    await open().open()
    assert.deepEqual(below('image-work'), [])
  })

  test('an image download that fills the disk leaves no files, and a smaller image can then be downloaded', async () => {
    await mkdir(join(room.directory, 'pool'))
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=8m', 'tmpfs', join(room.directory, 'pool')])
    try {
      const zeros = file('zeros', '\0'.repeat(16e6))
      const library = open()
      const large = room.registry.put('x:1', makeImage({ layers: [layer(zeros)] }))
      await fails('no-room', /^The disk that the runner keeps images on is full\.$/, bring(library, 'one', from(large)))
      const packed = room.registry.put('x:2', makeImage({ layers: [layer(file('noise', noise(10e6)))] }))
      await fails('no-room', /is full/, bring(library, 'one', from(packed)))
      await bring(library, 'one', from(room.registry.put('x:3', makeImage({ layers: [layer(file('a'))] }))))
    } finally {
      execFileSync('umount', [join(room.directory, 'pool')])
    }
  })
})
