import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { silentLog } from '#src/kit/log.ts'
import { type CacheHost, LineCache } from './line-cache.ts'

const GiB = 1024 ** 3

/** Opens a line cache on a fake host, whose templates have names but no contents. */
const openCache = async (templates: Set<string>, keepBelowLines: () => Promise<void> = async () => {}) => {
  const base = 'base'
  const host: CacheHost = {
    snapshot: async (_sandboxId, name) => void templates.add(name),
    templates: async () => [...templates].map((image) => ({ image, base })),
    removeTemplate: async (name) => void templates.delete(name),
    basesInUse: async () => new Set([base]),
    lastUseOfTemplate: async () => Date.now(),
    markTemplateUsed: async () => {},
    room: async () => ({ freeBytes: 50 * GiB, wholeBytes: 100 * GiB }),
    capabilities: { hardDiskLimit: true, ids: [] } as never,
  }
  const bases = {
    rootfsOf: () => '/',
    remove: async () => {},
    listBelowLines: () => [{ image: base, sizeBytes: 0 }],
    keepBelowLines,
  }
  return LineCache.open({ host, bases, log: silentLog() })
}

const key = (digit: string) => digit.repeat(32)

const lineOf = (digit: string, signal: AbortSignal) => ({
  organizationId: 'one',
  key: key(digit),
  sandboxId: 'build-1',
  image: 'image',
  files: 'files',
  signal,
})

suite('a line of a Dockerfile is cached only once', () => {
  test('if two builds cache the same line at the same time, only one copy of the line is kept', async () => {
    const templates = new Set<string>()
    const cache = await openCache(templates)
    const line = lineOf('a', new AbortController().signal)
    await Promise.all([cache.keep({ ...line, before: undefined }), cache.keep({ ...line, before: key('b') })])
    assert.deepEqual([templates.size, cache.usage().lines], [1, 1])
  })

  test('if a build is cancelled while its line waits for another build’s line, the line is not cached', async () => {
    const templates = new Set<string>()
    const goOn = Promise.withResolvers<void>()
    const cache = await openCache(templates, () => goOn.promise)
    const first = cache.keep({ ...lineOf('a', new AbortController().signal), before: undefined })
    const cancelled = new AbortController()
    const second = cache.keep({ ...lineOf('b', cancelled.signal), before: undefined })
    cancelled.abort()
    assert.equal(await second, false)
    goOn.resolve()
    assert.deepEqual([await first, templates.size], [true, 1])
  })

  test('if an earlier runner has cached a line twice, the next runner removes the copy that is not used', async () => {
    const owner = '0'.repeat(16)
    const templates = new Set([`line.${owner}.${key('a')}.none`, `line.${owner}.${key('a')}.${key('b')}`])
    const cache = await openCache(templates)
    assert.deepEqual([templates.size, cache.usage().lines], [1, 1])
  })
})
