// Tests a build whose sandbox cannot be removed: everything else that the build uses must be released anyway.
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { silentLog } from '#src/kit/log.ts'
import { emptyConfig, planOf } from '../images/definition/plan.ts'
import { Build } from './build.ts'
import type { BuildRequest } from './image-builder.ts'
import { type CacheHost, LineCache } from './line-cache.ts'
import type { BuildHost } from './workplace.ts'

const day = 24 * 3600 * 1000
const base = 'base'

const refuse = (reason: string) => async () => {
  throw new Error(reason)
}

/** Opens a line cache that contains every line of a definition. */
const openFullCache = async (now: () => number) => {
  const templates = new Set<string>()
  const host: CacheHost = {
    snapshot: async (_sandboxId, name) => void templates.add(name),
    templates: async () => [...templates].map((image) => ({ image, base })),
    removeTemplate: async (name) => void templates.delete(name),
    basesInUse: async () => new Set([base]),
    lastUseOfTemplate: async () => now(),
    markTemplateUsed: async () => {},
    room: async () => ({ freeBytes: 2 ** 36, wholeBytes: 2 ** 37 }),
    capabilities: { hardDiskLimit: true, ids: [] } as never,
  }
  const bases = {
    rootfsOf: () => '/',
    remove: async () => {},
    listBelowLines: () => [{ image: base, sizeBytes: 0 }],
    keepBelowLines: async () => {},
  }
  return LineCache.open({ host, bases, log: silentLog(), now })
}

const requestOf = (lines: string[], removed: string[]): BuildRequest => ({
  image: 'built',
  plan: planOf(['FROM base', ...lines].join('\n'), true),
  maxGiB: 1,
  organizationId: 'one',
  signal: new AbortController().signal,
  onProgress: () => {},
  bringBase: async () => ({ container: emptyConfig(), files: 'files' }),
  resolve: refuse('nothing is resolved'),
  removeBase: async (name) => void removed.push(name),
  withWebFile: refuse('nothing is fetched'),
  withRepository: refuse('nothing is fetched'),
})

suite('a build whose sandbox cannot be removed', () => {
  test('if the sandbox of a build cannot be removed, the build still releases its cached lines and images', async () => {
    let time = Date.now()
    const lines = await openFullCache(() => time)
    const host = {
      list: () => [],
      removeTemplate: async () => {},
      destroy: refuse('the sandbox cannot be removed'),
    } as unknown as BuildHost
    const parts = { host, agentAt: refuse('no agent') as never, lines, files: undefined }
    const removed: string[] = []
    // Number of cached lines that the build protects from eviction, each from the moment when the build finds it.
    let held = 0
    const hold = lines.hold.bind(lines)
    lines.has = () => true
    lines.hold = async (organizationId, key) => {
      const { signal } = new AbortController()
      const line = { sandboxId: 'build-1', image: 'image', files: 'files', signal }
      await lines.keep({ organizationId, key, before: undefined, ...line })
      held += 1
      return hold(organizationId, key)
    }
    const stages = ['RUN make', 'FROM other', 'RUN make', 'COPY --from=0 /a /a', 'RUN --network=none true']
    const build = new Build(requestOf(stages, removed), parts)
    await assert.rejects(build.run())
    await assert.rejects(build.clear(), /the sandbox cannot be removed/)
    assert.ok(held > 0)
    time += 15 * day
    await lines.sweep()
    assert.equal(lines.usage().lines, 0)
    assert.ok(removed.length > 0)
  })
})
