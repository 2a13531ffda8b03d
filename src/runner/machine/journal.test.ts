import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { Journal, type Spec } from './journal.ts'

suite('the runner’s journal', () => {
  let directory: string
  let journal: Journal
  before(() => {
    directory = mkdtempSync(join(tmpdir(), 'alcove-journal-'))
    journal = new Journal(directory)
  })
  after(() => rmSync(directory, { recursive: true, force: true }))

  const spec = { assignment: { sandboxId: 'a' }, status: 'started' } as Spec
  const run = { bootId: 'b', slot: 's' }

  test('`read` returns a sandbox’s journal entry as it was written last, and no unfinished file is left', async () => {
    await journal.writeSpec('a', { ...spec, status: 'stopped' })
    await journal.rewriteSpec('a', spec)
    await journal.writeRun('a', run)
    assert.deepEqual(await journal.read('a'), { spec, run })
    assert.deepEqual(readdirSync(join(directory, 'a')).sort(), ['run.json', 'spec.json'])
  })

  test('later writes wait for `rewriteSpecLate`; if `rewriteSpecLate` fails, its callback gets the error', async () => {
    await journal.writeSpec('late', spec)
    for (const errorReason of ['1', '2']) journal.rewriteSpecLate('late', { ...spec, errorReason }, assert.ifError)
    await journal.rewriteSpec('late', { ...spec, errorReason: '3' })
    assert.equal((await journal.read('late'))?.spec.errorReason, '3')
    journal.rewriteSpecLate('late', spec, assert.ifError)
    await journal.disown('late')
    assert.deepEqual(await journal.listGone(), ['late'])
    await journal.forget('late')

    const failed = Promise.withResolvers<unknown>()
    journal.rewriteSpecLate('nobody', spec, failed.resolve)
    await journal.settled()
    assert.equal(((await failed.promise) as NodeJS.ErrnoException).code, 'ENOENT')
  })

  test('after 20 concurrent writes of a sandbox’s `run.json`, the file has the complete text of one write', async () => {
    await Promise.all(Array.from({ length: 20 }, (_, pid) => journal.writeRun('a', { ...run, pid })))
    const read = await journal.read('a')
    assert.ok(read?.run?.pid !== undefined)
  })

  test('`read` of a journal ignores a damaged `run.json`, and returns undefined if `spec.json` is damaged', async () => {
    await journal.writeSpec('torn', spec)
    writeFileSync(join(directory, 'torn/run.json'), '{"boo')
    assert.deepEqual(await journal.read('torn'), { spec, run: undefined })
    writeFileSync(join(directory, 'torn/spec.json'), '')
    assert.equal(await journal.read('torn'), undefined)
    assert.ok((await journal.list()).includes('torn'))
  })

  test('`disown` moves a sandbox in the journal from `list` to `listGone`, and `forget` removes the sandbox', async () => {
    await journal.writeSpec('going', spec)
    await journal.disown('going')
    await journal.disown('going')
    assert.equal(await journal.read('going'), undefined)
    assert.equal((await journal.list()).includes('going'), false)
    await journal.forget('going')
    await journal.forget('going')
    assert.deepEqual(await journal.listGone(), [])
  })
})
