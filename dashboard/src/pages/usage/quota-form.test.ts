import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { changedOf, typedOf } from './quota-form.ts'

suite('the form of quotas', () => {
  const fields = [
    { name: 'volumeQuota', label: 'Volumes' },
    { name: 'authenticatedRateLimit', label: 'Calls', canBeAbsent: true },
  ] as const
  const before = typedOf(fields, { volumeQuota: 10, authenticatedRateLimit: null })

  test('the form of an organization’s quotas sends only the fields that were changed', () => {
    assert.deepEqual(before, { volumeQuota: '10', authenticatedRateLimit: '' })
    assert.deepEqual(changedOf(fields, before, { ...before, volumeQuota: ' 20 ' }), { volumeQuota: 20 })
    assert.deepEqual(changedOf(fields, before, { ...before, volumeQuota: ' 10 ' }), {})
  })

  test('the form of quotas sends 0 for an emptied limit, which the API reads as “no limit”', () => {
    const limited = typedOf(fields, { volumeQuota: 10, authenticatedRateLimit: 5 })
    assert.deepEqual(changedOf(fields, limited, { ...limited, authenticatedRateLimit: '' }), {
      authenticatedRateLimit: 0,
    })
  })

  test('if a quota is not a whole number, the error of the form of quotas names its field', () => {
    for (const text of ['', '-1', '1.5', 'many', '99999999999'])
      assert.throws(() => changedOf(fields, before, { ...before, volumeQuota: text }), /“Volumes” must be/)
  })
})
