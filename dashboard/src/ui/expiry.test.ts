import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { expiresAt, never, onDate } from './expiry.ts'

suite('`expiresAt`', () => {
  const now = Date.parse('2026-11-26T12:00:00Z')

  test('`expiresAt` returns null for “never”, and counts the days until an expiry from the server’s time', () => {
    assert.equal(expiresAt({ days: never, date: '2026-12-01' }, now), null)
    assert.equal(expiresAt({ days: '7', date: '' }, now), '2026-12-03T12:00:00.000Z')
  })

  test('what expires on a date, such as an API key, expires at the end of that date', () => {
    const end = new Date(expiresAt({ days: onDate, date: '2026-12-01' }, now)!)
    assert.deepEqual([end.getDate(), end.getHours(), end.getMinutes()], [1, 23, 59])
  })

  test('the form for an expiry shows the user an error if the date is missing or in the past', () => {
    assert.throws(() => expiresAt({ days: onDate, date: '' }, now), /Choose an expiry date/)
    assert.throws(() => expiresAt({ days: onDate, date: '2026-11-20' }, now), /in the past/)
  })
})
