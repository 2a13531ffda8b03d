// Tests that the journal stays readable if the power is cut during a write. strace shows which files are synced. strace needs root,
// so the suite is skipped without root.
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { needsRoot } from '#test/needs-root.ts'
import { cutEverywhere } from '#test/power-cut/cut-everywhere.ts'
import { Journal, type Spec } from './journal.ts'

const specOf = (errorReason: string) => ({ assignment: { sandboxId: 'a' }, status: 'error', errorReason }) as Spec

type Look = { told: number; journal: Journal; after: string }

const cutJournal = (
  act: (journal: Journal, mark: () => void) => Promise<void>,
  look: (left: Look) => Promise<void>,
): Promise<void> =>
  cutEverywhere(
    (directory, mark) => act(new Journal(directory), mark),
    ({ directory, ...left }) => look({ ...left, journal: new Journal(directory) }),
  )

const reasonIn = async (journal: Journal) => (await journal.read('a'))?.spec.errorReason

suite('the runner’s journal, with power cuts at any moment', { skip: needsRoot }, () => {
  test('when `writeSpec` has resolved, a power cut does not lose `spec.json`', () =>
    cutJournal(
      async (journal, mark) => {
        await journal.writeSpec('a', specOf('first'))
        mark()
      },
      async ({ told, journal, after }) => {
        const found = await reasonIn(journal)
        if (told > 0 || found !== undefined) assert.equal(found, 'first', after)
        if (told > 0) assert.deepEqual(await journal.list(), ['a'], after)
      },
    ))

  test('after a power cut during `rewriteSpec`, `spec.json` is complete, with the old or the new contents', () =>
    cutJournal(
      async (journal, mark) => {
        await journal.writeSpec('a', specOf('old'))
        mark()
        await journal.rewriteSpec('a', specOf('new'))
        mark()
      },
      async ({ told, journal, after }) => {
        if (told > 0) assert.match((await reasonIn(journal)) ?? 'none', /^(?:old|new)$/, after)
      },
    ))

  test('after a power cut during `rewriteSpecLate`, `spec.json` is complete, with old or new contents', () =>
    cutJournal(
      async (journal, mark) => {
        await journal.writeSpec('a', specOf('old'))
        mark()
        journal.rewriteSpecLate('a', specOf('new'), assert.ifError)
        await journal.settled()
      },
      async ({ told, journal, after }) => {
        if (told > 0) assert.match((await reasonIn(journal)) ?? 'none', /^(?:old|new)$/, after)
      },
    ))

  test('after a power cut during `writeRun`, `run.json` is complete or missing, and `spec.json` is unchanged', () =>
    cutJournal(
      async (journal, mark) => {
        await journal.writeSpec('a', specOf('first'))
        mark()
        await journal.writeRun('a', { bootId: 'b', slot: 's', pid: 7 })
      },
      async ({ told, journal, after }) => {
        if (told === 0) return
        const entry = await journal.read('a')
        assert.equal(entry?.spec.errorReason, 'first', after)
        assert.ok(entry.run === undefined || entry.run.pid === 7, after)
      },
    ))

  test('when `disown` has resolved, a power cut does not bring the removed sandbox back', () =>
    cutJournal(
      async (journal, mark) => {
        await journal.writeSpec('a', specOf('first'))
        mark()
        await journal.disown('a')
        mark()
      },
      async ({ told, journal, after }) => {
        if (told === 1) assert.equal((await journal.list()).length + (await journal.listGone()).length, 1, after)
        if (told === 2) assert.deepEqual([await journal.list(), await journal.listGone()], [[], ['a']], after)
      },
    ))

  test('after `oweArchives`, a power cut does not lose the record that a sandbox’s archives must be removed', () =>
    cutJournal(
      async (journal, mark) => {
        await journal.writeSpec('a', specOf('first'))
        await journal.oweArchives('a')
        mark()
        await journal.disown('a')
        mark()
      },
      async ({ told, journal, after }) => {
        if (told === 0) return
        if ((await journal.list()).includes('a')) await journal.disown('a')
        assert.equal(await journal.owesArchives('a'), true, after)
      },
    ))
})
