import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { isFiltered, readSnapshotSearch } from './search.ts'

suite('search parameters in the URL of the page that lists snapshots', () => {
  test('the page with the list of snapshots reads filters from its URL, and ignores unknown and wrong ones', () => {
    assert.deepEqual(readSnapshotSearch({ name: 12, page: 3, sort: 'state', order: 'asc', other: 1 }), {
      ...{ name: '12', page: 3, sort: 'state', order: 'asc' },
    })
    assert.deepEqual(readSnapshotSearch({ name: '', page: 1.5, sort: 'size', order: 'up', sourceSandboxId: [] }), {})
    assert.deepEqual(readSnapshotSearch({ page: -1 }), {})
  })

  test('in the list of snapshots, the sort order and the page number do not count as filters', () => {
    assert.equal(isFiltered({ page: 2, sort: 'name' }), false)
    assert.equal(isFiltered({ sourceSandboxId: 'x' }), true)
  })
})
