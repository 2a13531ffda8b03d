// Tests builds on images with ONBUILD triggers that copy or mount files of a stage, in real sandboxes. Needs root.
import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import { needsRoot } from '#test/needs-root.ts'
import { makeImage, tarOf } from '../images/testing/oci-image.ts'
import { TestRegistry } from '../images/testing/registry.ts'
import { openBuilding } from '../testing/building.ts'
import { busyboxFiles, needsBusybox } from '../testing/busybox-files.ts'
import { TestHost } from '../testing/test-host.ts'
import type { AllImages, ToBring } from './all-images.ts'
import { type LineLimits, standardLineLimits } from './line-cache.ts'

const skip = needsRoot || needsBusybox

/** Limits without a minimum of free disk space, so that the disk of this machine does not influence the tests. */
const roomy: LineLimits = { ...standardLineLimits, freeShare: 0 }

suite('a build on images with ONBUILD triggers', { skip }, () => {
  let box: TestHost
  let registry: TestRegistry
  let images: AllImages
  let from: string
  let count = 0

  before(async () => {
    box = await TestHost.start()
    registry = await TestRegistry.start()
    from = imageWith('plain')
    await box.close()
    const opened = await openBuilding(box.instance, box.directory, registry.host, undefined, roomy)
    box.use(opened)
    images = opened.images
  })
  after(async () => {
    await registry[Symbol.asyncDispose]()
    await box[Symbol.asyncDispose]()
  })

  /** Puts an image with these triggers into the registry, and returns its name. */
  const imageWith = (name: string, ...triggers: string[]) =>
    registry.put(
      `${name}:1`,
      makeImage({ layers: [tarOf(busyboxFiles())], config: { Env: ['PATH=/bin'], OnBuild: triggers } }),
    )
  const bring = async (lines: string[], organizationId?: string) => {
    count += 1
    const image = `built-${count}`
    const wanted: ToBring = {
      ...{ image, target: 'present', maxGiB: 1 },
      source: { kind: 'definition', dockerfile: lines.join('\n') },
      ...(organizationId === undefined ? {} : { organizationId }),
    }
    let log = ''
    await images.bring(wanted, {
      signal: new AbortController().signal,
      onProgress: () => {},
      onText: (text) => {
        log += text
      },
    })
    return { image, log }
  }
  /** Builds an image, and returns the output of a command in a sandbox of this image. */
  const said = async (lines: string[], command: string, organizationId?: string) => {
    const { image, log } = await bring(lines, organizationId)
    const { sandboxId } = await box.started({ image, isNew: true, user: 'root' })
    const { output } = await box.run(sandboxId, command)
    await box.host.destroy(sandboxId)
    assert.equal(await images.remove(image), true)
    return { output, cached: [...log.matchAll(/Line (\d+): cached: /g)].map(([, line]) => Number(line)) }
  }
  /** Checks that a build is refused with this message, both with and without the line cache. */
  const isRefused = async (lines: string[], message: RegExp) => {
    for (const organizationId of [undefined, 'one'])
      await assert.rejects(bring(lines, organizationId), { name: 'ImageFailed', message })
    assert.deepEqual(box.host.list(), [])
  }

  test('a build is refused if triggers of two images make their stages need each other', async () => {
    const [first, second] = [
      imageWith('first', 'COPY --from=1 /bin/sh /x'),
      imageWith('second', 'RUN --mount=from=0,target=/m true'),
    ]
    await isRefused(
      [`FROM ${first}`, `FROM ${second}`, 'COPY --from=0 /x /x'],
      /^Line 1 .*\(ONBUILD COPY --from=1 \/bin\/sh \/x of .*first:1\): stages need each other in a circle/,
    )
  })

  test('a build is refused if a trigger and a line of the Dockerfile make stages need each other', async () => {
    const second = imageWith('second', 'COPY --from=0 /x /x')
    await isRefused(
      [`FROM ${from}`, 'COPY --from=1 /bin/sh /x', `FROM ${second}`],
      /^Line 3 .*\(ONBUILD COPY --from=0 \/x \/x of .*second:1\): stages need each other in a circle/,
    )
  })

  test('a build is refused if a trigger names its own stage or a stage that does not exist', async () => {
    for (const stage of ['0', '7', 'own']) {
      const image = imageWith('wrong', `COPY --from=${stage} /x /x`)
      await isRefused(
        [`FROM ${image} AS own`, 'RUN true'],
        new RegExp(`^Line 1 .*\\(ONBUILD COPY --from=${stage} /x /x of .*wrong:1\\): --from=${stage} names no `),
      )
    }
  })

  test('a stage that only a trigger needs is built, by its name or number, even if it comes later', async () => {
    const named = imageWith('named', 'COPY --from=assets /a /a', 'RUN --mount=from=2,target=/m cat /m/b > /b')
    const lines = [
      ...[`FROM ${from} AS assets`, 'RUN cat /proc/sys/kernel/random/uuid > /a'],
      ...[`FROM ${named}`, 'RUN cat /a /b > /c'],
      ...[`FROM ${from}`, 'RUN echo later > /b', `FROM ${from}`, 'COPY --from=1 /c /c'],
    ]
    const uncached = await said(lines, 'cat /c')
    assert.match(uncached.output, /^[\da-f-]{36}\nlater$/)
    const first = await said(lines, 'cat /c', 'one')
    const second = await said(lines, 'cat /c', 'one')
    assert.deepEqual([first.cached, second.output], [[], first.output])
    assert.deepEqual(second.cached.sort(), [2, 3, 3, 4, 6, 8])
  })

  test('stages and images that only triggers need count towards the 20 that a build may have', async () => {
    const many = imageWith('many', ...Array.from({ length: 20 }, (_, n) => `COPY --from=example.com/i${n} /x /x`))
    await isRefused([`FROM ${many}`], /more than 20 stages and images/)
  })
})
