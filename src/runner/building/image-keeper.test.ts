import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { silentLog } from '#src/kit/log.ts'
import type { ImageReport, ImageSource, Progress } from '#src/wire/runner-link.ts'
import { AllImages, type BroughtImages, type Known, type ToBring } from './all-images.ts'
import { ImageKeeper, type ImageKeeperParts } from './image-keeper.ts'

const wanted = (image: string, changes: Partial<ToBring> = {}): ToBring => ({
  image,
  target: 'present',
  source: { kind: 'registry', reference: `example.test/${image}:1` },
  maxGiB: 4,
  ...changes,
})

/** An image store in memory. A test can make it slow or let it fail. */
class FakeImages {
  readonly here = new Map<string, Known>()
  readonly asked: string[] = []
  readonly inUse = new Set<string>()
  before: (signal: AbortSignal) => Promise<void> | void = () => undefined
  say: (progress: Progress) => void = () => undefined

  find(image: string) {
    return this.here.get(image)
  }

  readonly passwords: unknown[] = []

  async bring({ image, logins }: ToBring, parts: { signal: AbortSignal; onProgress: (progress: Progress) => void }) {
    this.asked.push(`bring ${image}`)
    this.passwords.push(logins?.map(({ password }) => password))
    this.say = parts.onProgress
    await this.before(parts.signal)
    const known = { sizeBytes: 7 }
    this.here.set(image, known)
    return known
  }

  readonly bases = new Set<string>()

  hasBaseOf(source: ImageSource) {
    return source.kind !== 'store' || this.bases.has(source.base)
  }

  async store(image: string, signal: AbortSignal) {
    this.asked.push(`store ${image}`)
    await this.before(signal)
    return { sha256: image.padEnd(64, '0') }
  }

  async removeStored(image: string) {
    this.asked.push(`remove stored ${image}`)
  }

  async remove(image: string) {
    this.asked.push(`remove ${image}`)
    if (this.inUse.has(image)) return false
    this.here.delete(image)
    return true
  }
}

const startKeeper = (lanes: ImageKeeperParts['lanes'] = {}) => {
  const images = new FakeImages()
  const reports: ImageReport[] = []
  const progress: string[] = []
  const time = { now: 10_000 }
  let wake = Promise.withResolvers<void>()
  const keeper = new ImageKeeper({
    images,
    log: silentLog(),
    lanes,
    now: () => time.now,
    onProgress: (image, { step, percent }) => progress.push(`${image} ${step} ${percent}`),
    onText: () => {},
    report: (report) => {
      reports.push(report)
      wake.resolve()
      wake = Promise.withResolvers()
    },
  })
  return {
    keeper,
    images,
    reports,
    progress,
    time,
    said: () => reports.map(({ image, state }) => `${image} ${state}`),
    reported: async (count: number) => {
      while (reports.length < count) await wake.promise
    },
    settled: async () => {
      for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate)
    },
    [Symbol.dispose]: () => keeper[Symbol.dispose](),
  }
}

suite('the keeper of images on a runner', () => {
  test('a requested image is fetched once, and reported again after each list of images from control', async () => {
    using kept = startKeeper()
    kept.keeper.take(wanted('tool'))
    kept.keeper.takeAll([wanted('tool')])
    await kept.reported(1)
    kept.keeper.takeAll([wanted('tool')])
    await kept.reported(2)
    assert.deepEqual(kept.images.asked, ['bring tool'])
    assert.deepEqual(kept.reports, Array(2).fill({ image: 'tool', state: 'present', sizeBytes: 7 }))
  })

  test('an image that control requests and the runner already has is reported, not fetched or built again', async () => {
    using kept = startKeeper()
    kept.images.here.set('tool', { digest: 'sha256:abc' })
    kept.keeper.takeAll([wanted('tool')])
    await kept.reported(1)
    assert.deepEqual(kept.images.asked, [])
    assert.deepEqual(kept.reports, [{ image: 'tool', state: 'present', digest: 'sha256:abc' }])
  })

  test('if control asks for a copy of a snapshot in the object store, the runner stores and reports it once', async () => {
    using kept = startKeeper()
    kept.images.here.set('copy', { sizeBytes: 3 })
    const asked = wanted('copy', { source: { kind: 'sandbox', sandboxId: 'box', isMade: true }, toStore: true })
    kept.keeper.take(asked)
    kept.keeper.takeAll([asked])
    await kept.reported(2)
    assert.deepEqual(kept.images.asked, ['store copy'])
    const stored = kept.reports.filter((report) => report.stored !== undefined)
    assert.deepEqual(stored, [
      { image: 'copy', state: 'present', sizeBytes: 3, stored: { sha256: 'copy'.padEnd(64, '0') } },
    ])
  })

  test('if an image cannot be put into the object store, the runner tries again a minute later', async () => {
    using kept = startKeeper()
    kept.images.here.set('copy', { sizeBytes: 3 })
    kept.images.before = () => {
      throw new Error('The store does not answer.')
    }
    const asked = wanted('copy', { toStore: true })
    kept.keeper.takeAll([asked])
    await kept.settled()
    kept.keeper.takeAll([asked])
    await kept.settled()
    assert.deepEqual(kept.images.asked, ['store copy'])
    kept.time.now += 60_000
    kept.keeper.takeAll([asked])
    await kept.settled()
    assert.deepEqual(kept.images.asked, ['store copy', 'store copy'])
  })

  test('removing an image cancels its upload to the store, and then removes the image’s stored copy, too', async () => {
    using kept = startKeeper()
    kept.images.here.set('copy', { sizeBytes: 3 })
    const ended = Promise.withResolvers<void>()
    kept.images.before = (signal) => {
      signal.addEventListener('abort', () => kept.images.asked.push('aborted'))
      return ended.promise
    }
    kept.keeper.take(wanted('copy', { toStore: true }))
    await kept.settled()
    kept.keeper.take({ image: 'copy', target: 'absent', maxGiB: 1, isStored: true })
    await kept.settled()
    assert.deepEqual(kept.images.asked, ['store copy', 'aborted'])
    ended.reject(new Error('aborted'))
    await kept.settled()
    assert.deepEqual(kept.images.asked, ['store copy', 'aborted', 'remove stored copy', 'remove copy'])
  })

  test('an image is fetched from the store only if its base image is on the runner', async () => {
    using kept = startKeeper()
    const asked = wanted('copy', { source: { kind: 'store', sha256: 'a'.repeat(64), base: 'python' } })
    kept.keeper.takeAll([asked])
    await kept.settled()
    assert.deepEqual([kept.images.asked, kept.reports], [[], []])
    kept.images.bases.add('python')
    kept.keeper.takeAll([asked])
    await kept.reported(1)
    assert.deepEqual(kept.images.asked, ['bring copy'])
  })

  test('a failed fetch of an image is reported after each list of images; only a new assignment retries it', async () => {
    using kept = startKeeper()
    kept.images.before = () => {
      throw new Error('There is no such image.')
    }
    kept.keeper.take(wanted('tool'))
    await kept.reported(1)
    kept.keeper.takeAll([wanted('tool')])
    await kept.reported(2)
    assert.deepEqual(kept.images.asked, ['bring tool'])
    assert.deepEqual(kept.reports[1], { image: 'tool', state: 'error', errorReason: 'There is no such image.' })
    kept.images.before = () => undefined
    kept.keeper.take(wanted('tool'))
    await kept.reported(3)
    assert.equal(kept.said().at(-1), 'tool present')
  })

  test('a new request for an image uses the registry passwords of that request, not of earlier requests', async () => {
    using kept = startKeeper()
    const withPassword = (password: string) =>
      wanted('tool', { logins: [{ host: 'example.test', project: '', username: 'us', password }] })
    kept.images.before = () => {
      throw new Error('The registry refuses.')
    }
    kept.keeper.take(withPassword('old'))
    await kept.reported(1)
    kept.keeper.take(withPassword('new'))
    await kept.reported(2)
    kept.keeper.take(wanted('tool'))
    await kept.reported(3)
    assert.deepEqual(kept.images.passwords, [['old'], ['new'], undefined])
  })

  test('an image to be removed stays while in use; the runner removes it at control’s next list of images', async () => {
    using kept = startKeeper()
    kept.images.here.set('tool', {})
    kept.images.inUse.add('tool')
    kept.keeper.takeAll([wanted('tool', { target: 'absent' })])
    await kept.settled()
    assert.deepEqual([kept.said(), kept.images.here.has('tool')], [[], true])
    kept.images.inUse.clear()
    kept.keeper.takeAll([wanted('tool', { target: 'absent' })])
    await kept.reported(1)
    assert.deepEqual([kept.said(), kept.images.here.has('tool')], [['tool absent'], false])
    kept.keeper.takeAll([wanted('never', { target: 'absent' })])
    await kept.reported(2)
    assert.equal(kept.said().at(-1), 'never absent')
  })

  test('an image in control’s list that the runner has lost is fetched only when control sends its source', async () => {
    using kept = startKeeper()
    const { source: _, ...known } = wanted('tool')
    kept.images.here.set('tool', { sizeBytes: 7 })
    for (let times = 0; times < 3; times += 1) {
      kept.keeper.takeAll([known])
      await kept.settled()
    }
    assert.deepEqual(kept.said(), ['tool present'])
    // An assignment with the source of the image gets a report, even if the image was already reported as present.
    kept.keeper.take(wanted('tool'))
    await kept.reported(2)
    kept.keeper.takeAll([known])

    const { source: __, ...lost } = wanted('lost')
    kept.keeper.takeAll([lost])
    await kept.reported(3)
    kept.keeper.take(wanted('lost'))
    await kept.reported(4)
    assert.deepEqual(kept.said().slice(1), ['tool present', 'lost absent', 'lost present'])
    assert.deepEqual(kept.images.asked, ['bring lost'])
  })

  test('removing an image while it is being fetched cancels the fetch, and the image is reported as absent', async () => {
    using kept = startKeeper()
    kept.images.before = (signal) =>
      new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true }))
    kept.keeper.take(wanted('tool'))
    await kept.settled()
    kept.keeper.take(wanted('tool', { target: 'absent' }))
    await kept.reported(1)
    assert.deepEqual(kept.said(), ['tool absent'])
  })

  test('if an image is assigned again while its fetch is being cancelled, the image is fetched again', async () => {
    using kept = startKeeper()
    const { promise, resolve } = Promise.withResolvers<void>()
    kept.images.before = () => promise
    kept.keeper.take(wanted('tool'))
    await kept.settled()
    kept.keeper.take(wanted('tool', { target: 'absent' }))
    kept.keeper.take(wanted('tool'))
    resolve()
    await kept.reported(1)
    assert.deepEqual(kept.said(), ['tool present'])
  })

  test('fetches of images above the limit are queued; the progress of each is reported once a second at most', async () => {
    using kept = startKeeper({ long: 2 })
    const { promise, resolve } = Promise.withResolvers<void>()
    kept.images.before = () => promise
    kept.keeper.takeAll(['a', 'b', 'c'].map((image) => wanted(image)))
    await kept.settled()
    assert.deepEqual(kept.images.asked, ['bring a', 'bring b'])
    for (const percent of [1, 2, 3]) kept.images.say({ step: 'downloading', percent })
    kept.time.now += 1000
    kept.images.say({ step: 'downloading', percent: 4 })
    assert.deepEqual(kept.progress, ['b downloading 1', 'b downloading 4'])
    resolve()
    await kept.reported(3)
  })
})

suite('slow builds and pulls of images', () => {
  const opened = () => {
    const kept = startKeeper({ long: 3, longOfOne: 2 })
    // In this suite a build or pull never finishes by itself. It ends when its image is no longer wanted.
    const { bring } = kept.images
    kept.images.bring = async (assignment, parts) => {
      if (assignment.source.kind !== 'sandbox')
        kept.images.before = (signal) =>
          new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true }))
      else kept.images.before = () => undefined
      return bring.call(kept.images, assignment, parts)
    }
    return kept
  }
  const ofOne = (image: string) => wanted(image, { organizationId: 'one' })

  test('one organization’s slow builds do not delay another’s build; queued builds keep their order', async () => {
    using kept = opened()
    for (const image of ['a', 'b', 'c', 'd']) kept.keeper.take(ofOne(image))
    for (const image of ['x', 'y']) kept.keeper.take(wanted(image, { organizationId: 'two' }))
    await kept.settled()
    assert.deepEqual(kept.images.asked, ['bring a', 'bring b', 'bring x'])
    kept.keeper.take({ ...ofOne('a'), target: 'absent' })
    await kept.settled()
    assert.deepEqual(kept.images.asked.slice(3).sort(), ['bring c', 'remove a'])
  })

  test('slow builds do not delay snapshots of sandboxes, removals of images, or reports about present images', async () => {
    using kept = opened()
    for (const image of ['gone', 'here']) kept.images.here.set(image, {})
    for (const image of ['a', 'b', 'x', 'y', 'z']) kept.keeper.take(wanted(image, { organizationId: image }))
    const source = { kind: 'sandbox', sandboxId: 'box' } as const
    kept.keeper.take(wanted('disk', { organizationId: 'a', source }))
    kept.keeper.take(wanted('gone', { target: 'absent' }))
    kept.keeper.take(wanted('here'))
    await kept.reported(3)
    assert.deepEqual(kept.said().sort(), ['disk present', 'gone absent', 'here present'])
  })

  test('removing an image whose build is queued reports it as absent immediately, and the build never starts', async () => {
    using kept = opened()
    for (const image of ['a', 'b', 'x', 'y']) kept.keeper.take(wanted(image, { organizationId: image }))
    kept.keeper.take(wanted('y', { target: 'absent' }))
    await kept.reported(1)
    assert.deepEqual([kept.said(), kept.images.asked], [['y absent'], ['bring a', 'bring b', 'bring x', 'remove y']])
  })
})

suite('images of all kinds on a runner', () => {
  const open = () => {
    const here = new Set(['default', 'python'])
    const known = new Map<string, Known>([['python', { digest: 'sha256:abc', sizeBytes: 1 }]])
    const removed: string[] = []
    const templates = new Map<string, { base: string; sizeBytes: number }>()
    const brought: BroughtImages = {
      list: () => ['default', 'python'],
      newest: (image) => image,
      sizeOf: (image) => (image.startsWith('base of') ? 100 : known.get(image)?.sizeBytes),
      rootfsOf: (image) => (here.has(image) ? '/files' : undefined),
      configOf: () => ({ entrypoint: ['/run'], env: {}, user: 'tool', workdir: '/' }),
      find: (image) => known.get(image),
      bring: async ({ image }) => {
        here.add(image)
        known.set(image, { digest: `sha256:${image}` })
        return { digest: `sha256:${image}` }
      },
      bringBase: () => assert.fail('nothing was to be built'),
      withWebFile: () => assert.fail('nothing was to be built'),
      withRepository: () => assert.fail('nothing was to be built'),
      resolve: () => assert.fail('nothing was to be built'),
      complete: () => assert.fail('nothing was to be built'),
      remove: async (image) => {
        here.delete(image)
        removed.push(image)
      },
    }
    const noBuilder = { build: () => assert.fail('nothing was to be built'), removeLeft: async () => {} }
    const host = {
      snapshot: async (sandboxId: string, image: string) =>
        void templates.set(image, { base: `base of ${sandboxId}`, sizeBytes: 5 }),
      templates: async () => [...templates].map(([image, template]) => ({ image, ...template })),
      template: async (image: string) => templates.get(image),
      removeTemplate: async (image: string) => void templates.delete(image),
      basesInUse: async () => new Set(['python']),
      storeTemplate: () => assert.fail('nothing was to be stored'),
      bringTemplate: async (image: string) => void templates.set(image, { base: 'python', sizeBytes: 5 }),
      removeStoredTemplate: () => assert.fail('nothing was stored'),
    }
    return { removed, templates, host, images: AllImages.open(brought, host, noBuilder) }
  }
  const bringing = { signal: new AbortController().signal, onProgress: () => undefined }
  const ofBox = (image: string) => wanted(image, { source: { kind: 'sandbox', sandboxId: 'box' } })

  test('if two snapshots are made at the same time, the runner knows both afterwards', async () => {
    const { images: opening, host, templates } = open()
    const images = await opening
    const wait = Promise.withResolvers<void>()
    const { templates: readAll, template: readOne } = host
    const late = async <T>(found: Promise<T>) => {
      await wait.promise
      return found
    }
    Object.assign(host, { templates: () => late(readAll()), template: (image: string) => late(readOne(image)) })
    const first = images.bring(ofBox('first'), bringing)
    await new Promise(setImmediate)
    Object.assign(host, { templates: readAll, template: readOne })
    await images.bring(ofBox('second'), bringing)
    wait.resolve()
    await first
    assert.ok(images.find('first') && images.find('second'))
    for (const image of ['first', 'second']) assert.equal(await images.remove(image), true)
    assert.deepEqual([...templates], [])
  })

  test('a snapshot can be removed even if its creation failed after its template was made', async () => {
    const { images: opening, host, templates } = open()
    const images = await opening
    const { snapshot } = host
    host.snapshot = async (...args) => {
      await snapshot(...args)
      throw new Error('the disk is slow')
    }
    await assert.rejects(images.bring(ofBox('mine'), bringing), /slow/)
    assert.equal(await images.remove('mine'), true)
    assert.deepEqual([...templates], [])
  })

  test('a lost snapshot of a sandbox is not made again, because the sandbox’s disk has changed since', async () => {
    const { images: opening, templates } = open()
    const images = await opening
    const source = { kind: 'sandbox', sandboxId: 'box', isMade: true } as const
    await assert.rejects(images.bring(wanted('mine', { source }), bringing), {
      name: 'ImageFailed',
      message: /is lost/,
    })
    assert.deepEqual([...templates], [])
  })

  test('a snapshot has the configuration of its base image, and its size includes the base image', async () => {
    const images = await open().images
    const made = await images.bring(wanted('mine', { source: { kind: 'sandbox', sandboxId: 'box' } }), bringing)
    assert.deepEqual([made.sizeBytes, made.config?.user, made.digest], [105, 'tool', undefined])
    assert.deepEqual(images.list(), ['default', 'python', 'mine'])
    assert.equal(await images.remove('mine'), true)
    assert.equal(images.find('mine'), undefined)
  })

  test('a pulled image has its registry’s digest, and cannot be removed while a disk is based on it', async () => {
    const { images: opening, removed } = open()
    const images = await opening
    assert.deepEqual(await images.bring(wanted('tool'), bringing), { digest: 'sha256:tool' })
    assert.equal(images.find('python')?.digest, 'sha256:abc')
    assert.equal(images.find('default')?.config?.user, 'tool')
    assert.equal(await images.remove('python'), false)
    assert.deepEqual(removed, [])
    assert.equal(await images.remove('tool'), true)
    assert.deepEqual(removed, ['tool'])
  })
})
