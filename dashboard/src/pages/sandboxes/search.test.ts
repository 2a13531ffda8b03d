import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { activeFilters, labelsText, readLabels, readListSearch } from './search.ts'

suite('search parameters in the URL of the page that lists sandboxes', () => {
  test('the page with the list of sandboxes reads filters from its URL, and ignores unknown and wrong ones', () => {
    const read = readListSearch({ name: 7, states: 'started', minCpu: 2, maxCpu: 'many', isPublic: true, other: 'x' })
    assert.deepEqual(read, { name: '7', states: ['started'], minCpu: 2, isPublic: true })
    assert.deepEqual(readListSearch({ sort: 'owner', order: 'up', snapshots: [1, 'a'] }), { snapshots: ['a'] })
  })

  test('the sort order of the list of sandboxes does not count as a filter', () => {
    assert.deepEqual(activeFilters({ sort: 'name', order: 'asc', name: 'a' }), ['name'])
  })

  test('labels that are shown as text are read back unchanged; a label without a key is not accepted', () => {
    const labels = { team: 'blue', note: 'a=b', empty: '' }
    assert.deepEqual(readLabels(labelsText(labels)), labels)
    for (const wrong of ['', ' , ', 'team', '=blue', 'team=blue, x']) assert.equal(readLabels(wrong), undefined, wrong)
  })
})
