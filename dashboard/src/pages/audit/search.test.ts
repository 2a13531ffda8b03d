import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { auditQuery, readAuditSearch, wordsOf } from './search.ts'

suite('the filters of the audit log', () => {
  test('the audit log page reads only known filters from its URL, and reads numbers as texts', () => {
    assert.deepEqual(readAuditSearch({ action: 'create', targetId: 42, outcome: 'refused', server: true, x: 'y' }), {
      ...{ action: 'create', targetId: '42', outcome: 'refused', server: true },
    })
    assert.deepEqual(readAuditSearch({ action: '', actor: {}, outcome: 'toString', server: 'yes' }), {})
  })

  test('a search of the audit log reads an actor with `@` as an e-mail address, without `@` as a user id', () => {
    assert.deepEqual(auditQuery({ actor: 'ann@example.com' }), { 'actorEmail[eq]': 'ann@example.com' })
    const id = '592943ff-d676-4772-a452-6bbf55ee16ae'
    assert.deepEqual(auditQuery({ actor: id }), { 'actorId[eq]': id })
  })

  test('a search of the audit log turns an outcome into status codes, and ignores an invalid time', () => {
    assert.deepEqual(auditQuery({ outcome: 'refused' }), { 'statusCode[gte]': 400, 'statusCode[lt]': 500 })
    assert.deepEqual(auditQuery({ after: 'soon' }), {})
    assert.deepEqual(auditQuery({ before: '2026-11-26T12:00:00Z' }), { to: '2026-11-26T12:00:00.000Z' })
  })

  test('`wordsOf` turns an API name such as `update_public_status` into separate words', () => {
    assert.equal(wordsOf('update_public_status'), 'update public status')
    assert.equal(wordsOf('api_key'), 'API key')
    assert.equal(wordsOf('update_sso_enabled'), 'update SSO enabled')
  })
})
