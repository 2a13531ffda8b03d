// Tests uploads of context files that are begun, but neither completed nor aborted. The upload calls themselves are tested in
// test/object-storage/.
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { DirectoryStore } from '../archive/directory-store.ts'
import { type ContextLimits, standardLimits } from './limits.ts'
import { ContextStore } from './store.ts'
import { sweepContexts } from './sweep.ts'

const named = (digit: string, organizationId = 'ours') => ({ organizationId, hash: digit.repeat(32) })
const hour = 3_600_000

const openContexts = async (limits: Partial<ContextLimits> = {}) => {
  const directory = await mkdtemp(join(tmpdir(), 'alcove-contexts-'))
  const time = { now: Date.now() }
  const store = new DirectoryStore(directory)
  const contexts = new ContextStore(store, { limits: { ...standardLimits, ...limits }, now: () => time.now })
  return {
    contexts,
    time,
    objects: async (kind: string) => {
      const keys: string[] = []
      for await (const { key } of store.list('contexts/')) if (key.includes(kind)) keys.push(key)
      return keys
    },
    putPart: (name: ReturnType<typeof named>, id: string, number = 1) =>
      contexts.putPart(
        name,
        id,
        number,
        (async function* () {
          yield Buffer.from('content')
        })(),
      ),
    [Symbol.asyncDispose]: () => rm(directory, { recursive: true, force: true }),
  }
}

const tooMany = { code: 'rate_limited', message: /Too many uploads are open/ }

suite('open uploads of context files', () => {
  test('open uploads are limited per organization and in total; a refused upload writes nothing to the store', async () => {
    await using kept = await openContexts({ uploadsOfOrganization: 2, uploads: 3 })
    const { contexts, objects } = kept
    const begun = await Promise.allSettled(['1', '1', '1', '2', '3'].map((digit) => contexts.beginUpload(named(digit))))
    assert.deepEqual(
      begun.map(({ status }) => status),
      ['fulfilled', 'fulfilled', 'rejected', 'rejected', 'rejected'],
    )
    await assert.rejects(contexts.beginUpload(named('2')), tooMany)
    await contexts.beginUpload(named('1', 'theirs'))
    await assert.rejects(contexts.beginUpload(named('1', 'theirs')), tooMany)
    await assert.rejects(contexts.beginUpload(named('1', 'others')), tooMany)
    assert.equal((await objects('/uploads/')).length, 3)
    assert.equal((await objects('/begun.json')).length, 2)
  })

  test('a context upload does not count as open any more if it is completed or aborted or could not begin', async () => {
    await using kept = await openContexts({ uploadsOfOrganization: 1, contextsOfOrganization: 2 })
    const { contexts } = kept
    const first = await contexts.beginUpload(named('1'))
    await contexts.abort(named('2'), first)
    await contexts.abort(named('1', 'theirs'), first)
    await contexts.abort(named('1'), '0'.repeat(32))
    await assert.rejects(contexts.beginUpload(named('1')), tooMany)
    await contexts.abort(named('1'), first)
    await contexts.abort(named('1'), first)
    const second = await contexts.beginUpload(named('2'))
    await assert.rejects(contexts.beginUpload(named('2')), tooMany)
    const { etag } = await kept.putPart(named('2'), second)
    await contexts.complete(named('2'), second, [{ number: 1, etag }])
    for (let times = 0; times < 2; times++)
      await assert.rejects(contexts.beginUpload(named('3')), {
        code: 'too_large',
        message: /no room for more uploaded files/,
      })
    await contexts.beginUpload(named('2'))
  })

  test('a context upload does not count as open any more after two hours without data', async () => {
    await using kept = await openContexts({ uploadsOfOrganization: 2 })
    const { contexts, time } = kept
    const [left, going] = [await contexts.beginUpload(named('1')), await contexts.beginUpload(named('1'))]
    time.now += hour
    await kept.putPart(named('1'), going)
    time.now += hour - 1
    await assert.rejects(contexts.beginUpload(named('1')), tooMany)
    time.now += 1
    await contexts.beginUpload(named('1'))
    await assert.rejects(contexts.beginUpload(named('1')), tooMany)
    // The upload `left` has expired, so it does not count as open. Its abort must not lower the number of open uploads again.
    await contexts.abort(named('1'), left)
    await assert.rejects(contexts.beginUpload(named('1')), tooMany)
  })

  test('abandoned context uploads are removed, even if their context stays; active uploads are kept', async () => {
    await using kept = await openContexts()
    const { contexts, time, objects, putPart } = kept
    const sweep = () => sweepContexts(contexts, { inUse: [{ organizationId: 'ours', hashes: [named('1').hash] }] })
    const [left, going] = [await contexts.beginUpload(named('1')), await contexts.beginUpload(named('1'))]
    const fresh = await contexts.beginUpload(named('2'))
    await putPart(named('1'), left)
    const { etag } = await putPart(named('1'), going)
    time.now += 1.5 * hour
    await putPart(named('1'), going, 2)
    await putPart(named('2'), fresh)
    time.now += hour
    assert.equal(await sweep(), 0)
    const ids = new Set((await objects('/uploads/')).map((key) => key.split('/')[4]))
    assert.deepEqual([...ids].sort(), [going, fresh].sort())
    await assert.rejects(putPart(named('1'), left), { code: 'not_found' })
    await contexts.complete(named('1'), going, [{ number: 1, etag }])
    // Begin one more upload of this context and abandon it. The context stays, because an image uses it.
    await contexts.beginUpload(named('1'))
    time.now += 30 * hour
    assert.equal(await sweep(), 1)
    assert.deepEqual(await objects('/uploads/'), [])
    assert.ok(await contexts.find(named('1')))
  })
})
