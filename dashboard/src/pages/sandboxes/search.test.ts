import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { activeFilters, labelsText, readLabels, readListSearch } from './search.ts'

suite('search parameters in the URL of the page that lists sandboxes', () => {
  test('`readListSearch` reads the API’s filters, and drops unknown parameters and values of a wrong type', () => {
    const read = readListSearch({ name: 7, states: 'started', minCpu: 2, maxCpu: 'many', isPublic: true, other: 'x' })
    assert.deepEqual(read, { name: '7', states: ['started'], minCpu: 2, isPublic: true })
    assert.deepEqual(readListSearch({ sort: 'owner', order: 'up', snapshots: [1, 'a'] }), { snapshots: ['a'] })
  })

  test('`activeFilters` does not count the sort order of the list as a filter', () => {
    assert.deepEqual(activeFilters({ sort: 'name', order: 'asc', name: 'a' }), ['name'])
  })

  test('`readLabels` reads the text that `labelsText` wrote, and returns undefined for a label without a key', () => {
    const labels = { team: 'blue', note: 'a=b', empty: '' }
    assert.deepEqual(readLabels(labelsText(labels)), labels)
    for (const wrong of ['', ' , ', 'team', '=blue', 'team=blue, x']) assert.equal(readLabels(wrong), undefined, wrong)
  })
})
