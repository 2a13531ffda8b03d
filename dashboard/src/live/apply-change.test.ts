import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type { SandboxRow } from '../api/client.ts'
import { applyChange, hasAll, type ListPages, replaceRows } from './apply-change.ts'

const row = (id: string, state: SandboxRow['state'] = 'started') => ({ id, name: id, state }) as SandboxRow
const list: ListPages = {
  pages: [
    { items: [row('a'), row('b')], nextCursor: 'next' },
    { items: [row('c')], nextCursor: null },
  ],
  pageParams: [],
}
const idsOf = ({ pages }: ListPages) => pages.map(({ items }) => items.map(({ id, state }) => `${id} ${state}`))

suite('an update of a list of sandboxes', () => {
  test('`applyChange` updates a sandbox’s row in the list, and keeps the objects of the list’s other pages', () => {
    const after = applyChange(list, [row('c', 'stopped')], true)
    assert.deepEqual(idsOf(after), [['a started', 'b started'], ['c stopped']])
    assert.equal(after.pages[0], list.pages[0])
  })

  test('`applyChange` removes a deleted sandbox from the list', () => {
    assert.deepEqual(idsOf(applyChange(list, [row('a', 'destroyed'), row('x', 'destroyed')], true)), [
      ['b started'],
      ['c started'],
    ])
  })

  test('`applyChange` puts a new sandbox first into a list without filters, but not into a filtered list', () => {
    assert.deepEqual(idsOf(applyChange(list, [row('n', 'creating')], true))[0]?.[0], 'n creating')
    assert.deepEqual(idsOf(applyChange(list, [row('n')], false)), idsOf(list))
    assert.deepEqual([hasAll(list, [row('c')]), hasAll(list, [row('c'), row('n')])], [true, false])
  })
})

suite('an update of a list that is not split into pages', () => {
  test('`replaceRows` updates a list’s changed rows and removes deleted sandboxes, but adds no row', () => {
    const rows = [row('b', 'stopped'), row('c', 'destroyed'), row('n')]
    assert.deepEqual(replaceRows([row('a'), row('b'), row('c')], rows), [row('a'), row('b', 'stopped')])
  })

  test('`replaceRows` returns the same list object if no row of the list has changed', () => {
    const members = [row('a')]
    assert.equal(replaceRows(members, [row('n')]), members)
  })
})
