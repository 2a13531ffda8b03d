import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { isOfUser } from './of-user.ts'

suite('`isOfUser`', () => {
  test('`isOfUser` is true for the URL of a call about the user, which needs no organization', () => {
    for (const path of ['organizations', 'organizations/invitations', 'organizations/invitations/x/accept', 'users/me'])
      assert.equal(isOfUser(`http://x/api/${path}`), true, path)
  })

  test('`isOfUser` is false for the URL of a call about one organization', () => {
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
