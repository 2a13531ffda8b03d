import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { isJwt, readBearer, readOrganizationHeader } from './bearer.ts'

suite('the credential and the organization of a request', () => {
  test('`readBearer` ignores the case of `Bearer`, and finds no token in any other authorization header', () => {
    assert.equal(readBearer({ authorization: 'bearer dtn_ab' }), 'dtn_ab')
    for (const authorization of ['', 'Bearer', 'Bearer ', 'Basic dtn_ab', 'Bearer a b', `Bearer ${'a'.repeat(9000)}`]) {
      assert.equal(readBearer({ authorization }), undefined, authorization)
    }
    assert.equal(readBearer({}), undefined)
  })

  test('a bearer token in the form of a JWT is recognized as a JWT', () => {
    assert.ok(isJwt('eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0.c2ln'))
    assert.ok(!isJwt(`dtn_${'0'.repeat(64)}`))
  })

  test('a request may name its organization in either of two headers; different names in both are refused', () => {
    assert.equal(readOrganizationHeader({}), undefined)
    assert.equal(readOrganizationHeader({ 'x-service-organization-id': 'a' }), 'a')
    assert.equal(readOrganizationHeader({ 'x-daytona-organization-id': 'b' }), 'b')
    assert.equal(readOrganizationHeader({ 'x-service-organization-id': 'a', 'x-daytona-organization-id': 'a' }), 'a')
    assert.throws(
      () => readOrganizationHeader({ 'x-service-organization-id': 'a', 'x-daytona-organization-id': 'b' }),
      { code: 'bad_request' },
    )
  })
})
