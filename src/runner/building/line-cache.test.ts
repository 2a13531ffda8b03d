// Tests that a build uses the cached lines of earlier builds, in real sandboxes and with a registry on loopback. Needs root.
import assert from 'node:assert/strict'
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { after, before, beforeEach, suite, test } from 'node:test'
import { needsRoot } from '#test/needs-root.ts'
import { DirectoryStore } from '../archive/directory-store.ts'
import { ContextStore } from '../contexts/store.ts'
import type { GivenBack } from '../images/given-back.ts'
import type { ImageStore } from '../images/store.ts'
import { makeImage, type TarEntry, tarOf } from '../images/testing/oci-image.ts'
import { TestRegistry } from '../images/testing/registry.ts'
import { openBuilding } from '../testing/building.ts'
import { busyboxFiles, needsBusybox } from '../testing/busybox-files.ts'
import { TestHost } from '../testing/test-host.ts'
import type { AllImages, ToBring } from './all-images.ts'
import { imageStorageOf } from './image-storage.ts'
import { type LineCache, type LineLimits, standardLineLimits } from './line-cache.ts'

const skip = needsRoot || needsBusybox

/** Limits without a minimum of free disk space, so that the disk of this machine does not influence the tests. */
const roomy: LineLimits = { ...standardLineLimits, freeShare: 0 }
const none: Partial<LineLimits> = { keptMs: -1 }

/** Returns a RUN line that writes a new random id each time it runs. */
const stamp = (path: string) => `RUN cat /proc/sys/kernel/random/uuid > ${path}`

suite('a line of a Dockerfile that has not changed', { skip }, () => {
  let box: TestHost
  let registry: TestRegistry
  let images: AllImages
  let lines: LineCache
  let store: ImageStore
  let givenBack: GivenBack
  let from: string
  let count = 0

  /** Limits of the cache under test. The cache reads them at each sweep, so a test can change them. */
  let limits: LineLimits

  const open = async () => {
    await box.close()
    limits = { ...roomy }
    const opened = await openBuilding(box.instance, box.directory, registry.host, undefined, limits)
    box.use(opened)
    ;({ images, lines, store, givenBack } = opened)
  }
  /** Changes the limits, and evicts cached lines that exceed them. */
  const evict = async (changes: Partial<LineLimits>) => {
    Object.assign(limits, roomy, changes)
    await lines.sweep()
  }
  const image = (content: string) =>
    makeImage({
      layers: [tarOf([...busyboxFiles(), { path: 'content', content }])],
      config: { Env: ['PATH=/bin'] },
    })
  before(async () => {
    box = await TestHost.start()
    registry = await TestRegistry.start()
    from = registry.put('busybox:1', image('one'))
    await open()
  })
  beforeEach(async () => {
    await evict(none)
    assert.deepEqual([lines.usage().lines, store.listBelowLines()], [0, []])
    await evict(roomy)
  })
  after(async () => {
    await registry[Symbol.asyncDispose]()
    await box[Symbol.asyncDispose]()
  })

  type Asked = { entries?: TarEntry[]; organizationId?: string | undefined; snapshots?: Record<string, string> }
  const wantedOf = async (
    definition: string[],
    { entries, organizationId, snapshots = {} }: Asked,
  ): Promise<ToBring> => {
    count += 1
    const of = { organizationId: organizationId ?? 'none', hash: count.toString(16).padStart(32, '0') }
    if (entries)
      await new ContextStore(new DirectoryStore(join(box.directory, 'contexts'))).put(
        of,
        Readable.from([tarOf(entries)]),
      )
    const files = entries ? { contexts: { organizationId: of.organizationId, hashes: [of.hash] } } : {}
    return {
      ...{ image: `built-${count}`, target: 'present', maxGiB: 1 },
      source: { kind: 'definition', dockerfile: definition.join('\n'), snapshots, ...files },
      ...(organizationId === undefined ? {} : { organizationId }),
    }
  }
  const bring = async (wanted: ToBring) => {
    let log = ''
    await images.bring(wanted, {
      signal: new AbortController().signal,
      onProgress: () => {},
      onText: (text) => {
        log += text
      },
    })
    return log
  }
  /** Builds a definition. Returns the numbers of the cached lines, and the output of `command` in a sandbox of the image. */
  const build = async (definition: string[], command = 'true', asked: Asked = {}) => {
    const wanted = await wantedOf(definition, { organizationId: 'one', ...asked })
    const log = await bring(wanted)
    const { sandboxId } = await box.started({ image: wanted.image, isNew: true, user: 'root' })
    const { output } = await box.run(sandboxId, command)
    await box.host.destroy(sandboxId)
    assert.equal(await images.remove(wanted.image), true)
    const cached = [...log.matchAll(/Line (\d+): cached: /g)].map(([, line]) => Number(line))
    return { output, cached, log }
  }

  test('an unchanged line of a Dockerfile is not run again, even if lines are added after it', async () => {
    const definition = [`FROM ${from}`, stamp('/a'), 'WORKDIR /srv', stamp('b')]
    const first = await build(definition, 'cat /a /srv/b')
    assert.deepEqual(first.cached, [])
    const second = await build([...definition, 'RUN echo more > c'], 'cat /a /srv/b; cat /srv/c')
    assert.deepEqual([second.cached, second.output], [[2, 3, 4], `${first.output}\nmore`])
    const changed = await build([...definition.slice(0, 3), stamp('other')], 'cat /a; ls /srv')
    assert.deepEqual(changed.cached, [2])
    assert.deepEqual(changed.output.split('\n'), [first.output.split('\n')[0], 'other'])
    const whole = await build(definition, 'cat /a /srv/b; ls -a / | grep alcove')
    assert.deepEqual([whole.cached, whole.output], [[2, 3, 4], first.output])
  })

  test('a cached line is used only by its organization; a build without an organization caches nothing', async () => {
    const definition = [`FROM ${from}`, stamp('/a')]
    const first = await build(definition, 'cat /a')
    const other = await build(definition, 'cat /a', { organizationId: 'two' })
    assert.deepEqual(other.cached, [])
    assert.notEqual(other.output, first.output)
    assert.equal(lines.usage().lines, 2)
    for (const _ of [1, 2])
      assert.deepEqual((await build([`FROM ${from}`, stamp('/b')], 'true', { organizationId: undefined })).cached, [])
    assert.equal(lines.usage().lines, 2)
  })

  test('the cache key of a COPY or bind mount depends on its files’ contents, names and modes, not times', async () => {
    const file = (content: string, changes: Partial<TarEntry> = {}): TarEntry[] => [
      { path: 'd', type: '5' },
      { path: 'd/f', content, mode: 0o644, ...changes },
      { path: 'other', content: Math.random().toString() },
    ]
    for (const line of ['COPY d /to/', 'RUN --mount=type=bind,source=d,target=/d cat /d/*']) {
      const made = (entries: TarEntry[]) => build([`FROM ${from}`, line, stamp('/a')], 'true', { entries })
      await made(file('one'))
      assert.deepEqual((await made(file('one'))).cached, [2, 3], line)
      assert.deepEqual((await made(file('two'))).cached, [], line)
      assert.deepEqual((await made(file('one', { mode: 0o755 }))).cached, [], line)
      assert.deepEqual((await made(file('one', { path: 'd/g' }))).cached, [], line)
    }
  })

  test('a cached line is not used if its base image, or an image that COPY --from names, has changed', async () => {
    const tools = registry.put('tools:1', makeImage({ layers: [tarOf([{ path: 'tool', content: 'one' }])] }))
    const definition = [`FROM ${from}`, stamp('/a'), `COPY --from=${tools} /tool /tool`]
    await build(definition)
    assert.deepEqual((await build(definition, 'cat /tool')).cached, [2, 3])
    registry.put('tools:1', makeImage({ layers: [tarOf([{ path: 'tool', content: 'two' }])] }))
    const newTool = await build(definition, 'cat /tool')
    assert.deepEqual([newTool.cached, newTool.output], [[2], 'two'])
    registry.put('busybox:1', image('two'))
    const newBase = await build(definition, 'cat /content')
    assert.deepEqual([newBase.cached, newBase.output], [[], 'two'])
    registry.put('busybox:1', image('one'))
    assert.deepEqual((await build(definition)).cached, [2, 3])
  })

  test('a build stage is skipped if every line that copies from it is cached', async () => {
    const stages = (...last: string[]) => [
      `FROM ${from} AS build`,
      'ARG V=1',
      stamp('/a'),
      'RUN cp /a /out || cat /a > /out',
      `FROM ${from}`,
      'COPY --from=build /out /out',
      ...last,
    ]
    const first = await build(stages(), 'cat /out')
    const second = await build(stages('RUN echo x > /x'), 'cat /out')
    assert.deepEqual([second.cached, second.output], [[3, 4, 6], first.output])
    assert.doesNotMatch(second.log, /Stage 0/)
    assert.match(second.log, /^\[build\] Line 3: cached: RUN cat/m)
    // The added line copies `/a` from the stage `build`. The disk of this stage is cached, so no line of the stage runs again.
    const again = await build(stages('COPY --from=build /a /again'), 'cat /out /again')
    assert.deepEqual([again.cached, again.output], [[3, 4, 6], `${first.output}\n${first.output}`])
    const changed = await build(
      stages().map((line) => line.replace('V=1', 'V=2')),
      'cat /out',
    )
    assert.deepEqual(changed.cached, [])
    assert.notEqual(changed.output, first.output)
  })

  test('if all lines of a stage are cached, none of them runs, even if another stage is built on that stage', async () => {
    const stages = (...last: string[]) => [
      `FROM ${from} AS one`,
      stamp('/a'),
      'FROM one AS two',
      'ENV B=1',
      'FROM two',
      ...last,
    ]
    const first = await build(stages('RUN echo 1 > /x'), 'cat /a')
    const second = await build(stages('RUN echo 2 > /x'), 'cat /a; cat /x')
    assert.deepEqual([second.cached, second.output], [[2], `${first.output}\n2`])
    const third = await build(stages(), 'cat /a')
    assert.deepEqual([third.cached, third.output], [[2], first.output])
  })

  test('each build downloads the URL of an ADD again; the cached line is used if the content is unchanged', async () => {
    let [content, asked] = ['one', 0]
    registry.onRequest = (path, answer) => {
      if (path !== '/file') return answer
      asked += 1
      return { status: 200, type: 'text/plain', body: Buffer.from(content) }
    }
    const definition = [`FROM ${from}`, `ADD http://${registry.host}/file /file`, stamp('/a')]
    const first = await build(definition, 'cat /a')
    assert.equal(asked, 1)
    const second = await build(definition, 'cat /a')
    assert.deepEqual([second.cached, second.output, asked], [[2, 3], first.output, 2])
    content = 'two'
    const third = await build(definition, 'cat /file')
    assert.deepEqual([third.cached, third.output], [[], 'two'])
  })

  test('ADD of a URL is cached even in a stage that builds on another stage', async () => {
    registry.onRequest = (path, answer) =>
      path === '/file' ? { status: 200, type: 'text/plain', body: Buffer.from('one') } : answer
    const definition = [
      ...[`FROM ${from} AS one`, stamp('/a'), 'FROM one AS two', 'ENV B=1', 'FROM two'],
      ...[`ADD http://${registry.host}/file /file`, stamp('/b')],
    ]
    const first = await build(definition, 'cat /a /b')
    const second = await build(definition, 'cat /a /b')
    assert.deepEqual([second.cached, second.output], [[2, 6, 7], first.output])
  })

  test('if a file that ADD downloads changes during a build, only builds with the new file use cached lines', async () => {
    let answers = ['zero']
    registry.onRequest = (path, answer) => {
      if (path !== '/file') return answer
      const content = answers.length > 1 ? answers.shift() : answers[0]
      return { status: 200, type: 'text/plain', body: Buffer.from(content as string) }
    }
    const stages = [
      `FROM ${from} AS one`,
      `ADD http://${registry.host}/file /file`,
      'RUN cp /file /copy',
      'FROM one AS two',
      'RUN cp /copy /again',
      `FROM ${from}`,
      'COPY --from=two /again /again',
      'RUN cp /again /last',
    ]
    await build(stages)
    answers = ['one', 'two']
    assert.equal((await build(stages, 'cat /last')).output, 'two')
    answers = ['one']
    const { cached, output } = await build(stages, 'cat /last')
    assert.deepEqual([cached, output], [[], 'one'])
    answers = ['two']
    const again = await build(stages, 'cat /last')
    assert.deepEqual([again.cached, again.output], [[2, 3, 5, 7, 8], 'two'])
  })

  test('a RUN runs again if its secret’s id changes; a cache mount keeps its files from build to build', async () => {
    const definition = [
      `FROM ${from}`,
      'RUN --mount=type=cache,target=/cache echo kept > /cache/x',
      'RUN --mount=type=secret,id=token test ! -e /run/secrets/token',
    ]
    await build(definition)
    const { cached, output } = await build(
      [...definition, 'RUN --mount=type=cache,target=/cache cat /cache/x > /seen'],
      'cat /seen; ls -a / | grep alcove',
    )
    assert.deepEqual([cached, output], [[2, 3], 'kept'])
    const other = definition.map((line) => line.replaceAll('token', 'other'))
    assert.deepEqual((await build(other)).cached, [2])
    // Whatever id a cache mount of another organization has, the mount must not contain files of this organization.
    const ids = ['/cache', '../caches', '../../../..'].map(
      (id) => `RUN --mount=type=cache,id=${id},target=/c ls -A /c >> /seen`,
    )
    const stranger = await build([`FROM ${from}`, ...ids], 'cat /seen', { organizationId: 'two' })
    assert.deepEqual([stranger.cached, stranger.output], [[], ''])
  })

  test('a Dockerfile line that fails is not cached, but the successful lines before it are cached', async () => {
    const failing = await wantedOf([`FROM ${from}`, stamp('/a'), 'RUN echo half > /half; exit 3'], {
      organizationId: 'one',
    })
    await assert.rejects(bring(failing), /Line 3: exit code 3/)
    const { cached, output } = await build([`FROM ${from}`, stamp('/a'), 'RUN ls / > /b'], 'grep -c half /b')
    assert.deepEqual([cached, output], [[2], '0'])
  })

  test('cached lines survive a kill of the runner; a line that was being cached is complete or absent', async () => {
    const definition = [`FROM ${from}`, stamp('/a'), 'RUN sleep 1; echo two > /two']
    await box.close()
    const killable = fork(join(import.meta.dirname, '../testing/killable-builder-program.ts'), [
      ...[box.instance, box.directory, registry.host],
    ])
    killable.send(await wantedOf(definition, { organizationId: 'one' }))
    const ended = once(killable, 'exit').then(() => assert.fail('it ended before it was killed'))
    ended.catch(() => {})
    for (let said = ''; said !== 'line 3'; ) [said] = await Promise.race([once(killable, 'message'), ended])
    killable.kill('SIGKILL')
    await once(killable, 'exit')
    await open()
    assert.equal(lines.usage().lines, 1)
    const first = await build(definition, 'cat /a /two')
    assert.deepEqual([first.cached, first.output.endsWith('two')], [[2], true])
    await open()
    assert.deepEqual((await build(definition)).cached, [2, 3])
  })

  test('if the base image of a cached line is lost, the line is removed, and the next build runs it again', async () => {
    const definition = [`FROM ${from}`, stamp('/a')]
    await build(definition)
    for (const { image: base } of store.listBelowLines()) await store.remove(base)
    await open()
    assert.equal(lines.usage().lines, 0)
    assert.deepEqual(
      (await box.host.templates()).map(({ image }) => image),
      [],
    )
    assert.deepEqual((await build(definition)).cached, [])
  })

  test('`imageStorageOf` returns the bytes of cached lines, and the evicted bytes by reason for eviction', async () => {
    const definition = [`FROM ${from}`, 'RUN head -c 5000000 /dev/urandom > /a']
    const storage = () => imageStorageOf(store, images, lines, givenBack)
    // A newly opened cache counts evicted bytes from 0.
    await open()
    const wanted = await wantedOf(definition, { organizationId: 'one' })
    await bring(wanted)
    await lines.sweep()
    const { bytes } = storage()
    const { lines: kept = 0, images: files = 0 } = bytes
    assert.ok(kept > 5e6 && kept < 1e7, String(kept))
    assert.ok(files > 5e6, String(files))
    assert.equal(await images.remove(wanted.image), true)
    assert.ok((storage().givenBack.images?.unused ?? 0) > 5e6, JSON.stringify(storage()))
    await evict(none)
    assert.deepEqual([storage().bytes.lines, storage().givenBack.lines], [0, { age: kept }])
    await evict(roomy)
    await build(definition)
    await lines.sweep()
    const again = storage().bytes.lines
    await evict({ freeShare: 2 })
    assert.deepEqual([storage().bytes.lines, storage().givenBack.lines], [0, { age: kept, pressure: again }])
  })

  test('the size of the line cache includes files of a cached line that a later line replaces or removes', async () => {
    const MiB = 2 ** 20
    const write = (path: string) => `head -c ${4 * MiB} /dev/urandom > /${path}; sync`
    const replacing = ['1', '2', '3'].map((n) => `RUN ${write('f')}; echo ${n}`)
    const outlivingOneLine = ['1', '2', '3'].map((n) => `RUN rm -f /g${Number(n) - 2}; ${write(`g${n}`)}`)
    await build([`FROM ${from}`, ...replacing, 'RUN rm /f', ...outlivingOneLine])
    await lines.sweep()
    const [base] = store.listBelowLines()
    const { bytes } = lines.usage()
    assert.ok(bytes - (base?.sizeBytes ?? 0) >= 6 * 4 * MiB, `${bytes} bytes`)
  })

  test('cached lines are evicted if one organization or all together have too many lines, or the disk fills', async () => {
    const many = (...more: string[]) => [`FROM ${from}`, stamp('/a'), stamp('/b'), ...more]
    const kept = await wantedOf([...many(), 'RUN echo > /kept'], { organizationId: 'one' })
    await bring(kept)
    await build(many('RUN echo > /c'), 'true', { organizationId: 'two' })
    assert.equal(lines.usage().lines, 6)
    await evict({ mostOfOrganization: 2 })
    assert.equal(lines.usage().lines, 4)
    await evict({ most: 3 })
    assert.equal(lines.usage().lines, 3)
    // Later lines of a definition are evicted before earlier lines.
    assert.deepEqual((await build(many(), 'true', { organizationId: 'two' })).cached, [2, 3])
    await evict({ freeShare: 2 })
    assert.deepEqual([lines.usage().lines, store.listBelowLines()], [0, []])
    // While too little of the disk is free, no line is cached.
    await build(many())
    assert.equal(lines.usage().lines, 0)
    const { sandboxId } = await box.started({ image: kept.image, isNew: true, user: 'root' })
    assert.equal((await box.run(sandboxId, 'test -s /a')).exitCode, 0)
    await box.host.destroy(sandboxId)
    assert.equal(await images.remove(kept.image), true)
  })
})
