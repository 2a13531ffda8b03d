import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { auditQuery, readAuditSearch, wordsOf } from './search.ts'

suite('the filters of the audit log', () => {
  test('`readAuditSearch` keeps what it knows, and takes numbers of the address as texts', () => {
    assert.deepEqual(readAuditSearch({ action: 'create', targetId: 42, outcome: 'refused', server: true, x: 'y' }), {
      ...{ action: 'create', targetId: '42', outcome: 'refused', server: true },
    })
    assert.deepEqual(readAuditSearch({ action: '', actor: {}, outcome: 'toString', server: 'yes' }), {})
  })

  test('`auditQuery` asks for an id or an address, as the actor is one or the other', () => {
    assert.deepEqual(auditQuery({ actor: 'ann@example.com' }), { 'actorEmail[eq]': 'ann@example.com' })
    const id = '592943ff-d676-4772-a452-6bbf55ee16ae'
    assert.deepEqual(auditQuery({ actor: id }), { 'actorId[eq]': id })
  })

  test('`auditQuery` turns an outcome into statuses, and leaves out a time that is none', () => {
    assert.deepEqual(auditQuery({ outcome: 'refused' }), { 'statusCode[gte]': 400, 'statusCode[lt]': 500 })
    assert.deepEqual(auditQuery({ after: 'soon' }), {})
    assert.deepEqual(auditQuery({ before: '2026-11-26T12:00:00Z' }), { to: '2026-11-26T12:00:00.000Z' })
  })

  test('`wordsOf` makes words of the API’s', () => {
    assert.equal(wordsOf('update_public_status'), 'update public status')
    assert.equal(wordsOf('api_key'), 'API key')
    assert.equal(wordsOf('update_sso_enabled'), 'update SSO enabled')
  })
})
