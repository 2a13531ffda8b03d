import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { startControl } from '#test/control/harness.ts'
import { forgetOldKeys } from './idempotency.ts'

suite('idempotency keys', () => {
  test('if there are too many idempotency keys, the organization with the most loses its oldest keys', async () => {
    await using app = await startControl()
    const { sql } = app.database
    const now = app.clock.now()
    await sql`
      insert into idempotency_keys (organization_id, key, request_hash, sandbox_id, created_at)
      select case when n <= 10 then 'few' else 'many' end, 'key ' || n, 'x', 'x',
        ${now}::timestamptz - interval '1 hour' + n * interval '1 ms'
      from generate_series(1, 8000) n`
    await sql`analyze idempotency_keys`
    const left = async () => [
      ...(await sql`
        select organization_id as id, count(*)::integer, min(created_at) = min(created_at) filter (
          where key = 'key 5011') as is_newest from idempotency_keys group by 1 order by 1`),
    ]
    await forgetOldKeys(sql, now, 8000)
    assert.deepEqual(
      (await left()).map(({ id, count }) => [id, count]),
      [
        ['few', 10],
        ['many', 7990],
      ],
    )
    await forgetOldKeys(sql, now, 7999)
    const [few, many] = await left()
    assert.deepEqual([few?.['count'], many?.['count'], many?.['is_newest']], [10, 2990, true])
  })
})
