import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { activeFilters, labelsText, readLabels, readListSearch } from './search.ts'

suite('the address of the list of sandboxes', () => {
  test('`readListSearch` keeps the filters of the interface, and leaves out what is unknown or has another type', () => {
    const read = readListSearch({ name: 7, states: 'started', minCpu: 2, maxCpu: 'many', isPublic: true, other: 'x' })
    assert.deepEqual(read, { name: '7', states: ['started'], minCpu: 2, isPublic: true })
    assert.deepEqual(readListSearch({ sort: 'owner', order: 'up', snapshots: [1, 'a'] }), { snapshots: ['a'] })
  })

  test('the order of the list is not a filter', () => {
    assert.deepEqual(activeFilters({ sort: 'name', order: 'asc', name: 'a' }), ['name'])
  })

  test('`readLabels` reads what `labelsText` wrote, and refuses a text without a key', () => {
    const labels = { team: 'blue', note: 'a=b', empty: '' }
    assert.deepEqual(readLabels(labelsText(labels)), labels)
    for (const wrong of ['', ' , ', 'team', '=blue', 'team=blue, x']) assert.equal(readLabels(wrong), undefined, wrong)
  })
})
