import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { startControl } from '#test/control/harness.ts'

suite('the periodic tasks of control', () => {
  test('if a periodic task fails, control still runs all other periodic tasks, and then reports the failure', async () => {
    await using app = await startControl()
    const { sql } = app.database
    await sql`
      insert into sandbox_meters (sandbox_id, at, cpu_count, cpu_used_pct, mem_total, mem_used, mem_cache, disk_total)
      values (gen_random_uuid(), '2020-01-01', 1, 1, 1, 1, 1, 1)`
    await sql`alter table audit_log rename to elsewhere`
    await assert.rejects(app.sweep(), /audit_log/)
    assert.equal((await sql`select from sandbox_meters`).count, 0)
    await sql`alter table elsewhere rename to audit_log`
    await app.sweep()
  })
})
