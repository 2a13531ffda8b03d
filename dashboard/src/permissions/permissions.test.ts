import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { permissions as known } from '../../../src/control/auth/permissions.ts'
import { allPermissions, sentenceOf, summaryOf, workPermissions } from './permissions.ts'

suite('the permissions that the pages offer', () => {
  test('the dashboard offers each permission of the server exactly once, with a sentence that explains it', () => {
    assert.deepEqual(allPermissions.toSorted(), Object.keys(known).toSorted())
    for (const permission of allPermissions) assert.notEqual(sentenceOf(permission), permission)
  })

  test('a list of permissions is shown as “All” only if the list has every permission', () => {
    assert.equal(summaryOf(allPermissions), 'All')
    assert.equal(summaryOf([]), 'None')
    assert.equal(summaryOf(workPermissions), `${workPermissions.length} of ${allPermissions.length}`)
    assert.equal(summaryOf(['write:sandboxes', 'write:sandboxes']), `1 of ${allPermissions.length}`)
  })
})
