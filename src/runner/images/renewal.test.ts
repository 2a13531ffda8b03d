import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, suite, test } from 'node:test'
import { silentLog } from '#src/kit/log.ts'
import { Renewal } from './renewal.ts'
import { RenewalFiles } from './renewal-files.ts'

const day = 86_400_000

suite('renewals of the default image', () => {
  let directory: string
  let files: RenewalFiles
  let now: number
  let madeAt: number
  let isOfThisRecipe: boolean
  let renewals: Date[]
  let removals: ReadonlySet<string>[]
  let fails: boolean
  let renewal: Renewal

  const open = () =>
    new Renewal({
      images: {
        renewDefault: async (notBefore, onProgress) => {
          renewals.push(notBefore)
          onProgress({ step: 'packing', percent: 90 })
          assert.equal(files.read().renewal?.step, 'packing')
          if (fails) throw new Error('no mirror')
          madeAt = now
          isOfThisRecipe = true
        },
        defaultAge: () => ({ madeAt: new Date(madeAt), isOfThisRecipe }),
        removeReplaced: async (inUse) => {
          removals.push(inUse)
          return []
        },
      },
      basesInUse: async () => new Set(['default']),
      runnerDirectory: directory,
      log: silentLog(),
      now: () => now,
    })

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'alcove-renewal-'))
    files = new RenewalFiles(directory)
    now = Date.parse('2026-01-01')
    madeAt = now
    isOfThisRecipe = true
    fails = false
    renewals = []
    removals = []
    renewal = open()
  })
  afterEach(async () => {
    renewal[Symbol.dispose]()
    await rm(directory, { recursive: true, force: true })
  })

  const start = async () => {
    renewal.start()
    await renewal.look()
  }

  test('the default image is renewed once after 30 days; then older versions that nothing uses are removed', async () => {
    await start()
    now += 30 * day - 1
    await renewal.look()
    assert.deepEqual(renewals, [])
    now += 1
    await renewal.look()
    await renewal.look()
    assert.deepEqual(renewals, [new Date(now - 7 * day)])
    assert.deepEqual(removals.at(-1), new Set(['default']))
    assert.deepEqual(files.read(), {
      madeAt: new Date(now).toISOString(),
      renewal: { state: 'done', since: new Date(now).toISOString() },
    })
  })

  test('the default image is renewed at any age if its recipe has changed', async () => {
    isOfThisRecipe = false
    await start()
    assert.equal(renewals.length, 1)
  })

  test('a failed renewal of the default image is reported, and the runner tries again a day later', async () => {
    const before = new Date(madeAt).toISOString()
    now += 31 * day
    fails = true
    await start()
    assert.deepEqual(files.read(), {
      madeAt: before,
      renewal: { state: 'failed', since: new Date(now).toISOString(), reason: 'no mirror' },
    })
    now += day - 1
    await renewal.look()
    assert.equal(renewals.length, 1)
    fails = false
    now += 1
    await renewal.look()
    assert.deepEqual([renewals.length, files.read().renewal?.state], [2, 'done'])
  })

  test('a request for a renewal renews even a new default image; the renewal’s state has the request’s id', async () => {
    await start()
    fails = true
    const first = files.request()
    await renewal.look()
    assert.deepEqual([files.read().renewal?.request, files.read().renewal?.state], [first, 'failed'])
    fails = false
    const second = files.request()
    await renewal.look()
    assert.deepEqual([files.read().renewal?.request, files.read().renewal?.state], [second, 'done'])
    assert.deepEqual(renewals, [new Date(now), new Date(now)])
    await renewal.look()
    assert.equal(renewals.length, 2)
  })

  test('a renewal of the default image that was running when the runner was killed is reported as failed', async () => {
    files.open()
    files.write({ renewal: { state: 'running', since: new Date(now).toISOString(), step: 'packing', percent: 90 } })
    await start()
    assert.deepEqual(
      [files.read().renewal?.state, files.read().renewal?.reason],
      ['failed', 'The runner ended before the renewal was finished.'],
    )
  })
})
