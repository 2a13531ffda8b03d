import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { suite, test } from 'node:test'
import { isOwnToken, withoutMark } from './sso-token.ts'

suite('the token of an identity provider in an address', () => {
  const mark = hash('sha256', 'token', 'base64url')

  test('the dashboard accepts a sign-in token only in the browser that did the sign-in', () => {
    assert.equal(isOwnToken('token', `a=b; alcove-sso-token=${mark}`, false), true)
    assert.equal(isOwnToken('token of a stranger', `alcove-sso-token=${mark}`, false), false)
    assert.equal(isOwnToken('token', '', false), false)
  })

  test('with HTTPS, the cookie for a sign-in token has the prefix `__Host-`, so no other host can set it', () => {
    assert.equal(isOwnToken('token', `alcove-sso-token=${mark}`, true), false)
    assert.equal(isOwnToken('token', `__Host-alcove-sso-token=${mark}`, true), true)
    assert.match(withoutMark(true), /^__Host-alcove-sso-token=; .*Max-Age=0.*Secure$/)
  })
})
