import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { isOfUser } from './of-user.ts'

suite('`isOfUser`', () => {
  test('true for what a user has without any organization', () => {
    for (const path of ['organizations', 'organizations/invitations', 'organizations/invitations/x/accept', 'users/me'])
      assert.equal(isOfUser(`http://x/api/${path}`), true, path)
  })

  test('false for what belongs to an organization', () => {
    for (const path of [
      'organizations/x',
      'organizations/x/users',
      'organizations/x/invitations',
      'api-keys',
      'sandbox',
    ])
      assert.equal(isOfUser(`http://x/api/${path}?organizations`), false, path)
  })
})
