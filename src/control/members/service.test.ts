import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { changeMembership } from '#src/control/auth/change-membership.ts'
import { startControl, type TestControl } from '#test/control/harness.ts'
import { organizations, userId } from '#test/control/people.ts'
import { joinOrganization } from './service.ts'

const join = async (app: TestControl, user: string) => {
  const parts = { database: app.database, callers: app.app.sandboxes.callers }
  const joining = { organizationId: organizations.ours, userId: user, role: 'member', roleIds: [] } as const
  return await changeMembership(parts, organizations.ours, (sql) => joinOrganization(sql, joining, app.clock.now()))
}

suite('a user who joins an organization that already has 5000 members', () => {
  test('a user cannot join an organization that has 5000 members, unless they are a member already', async () => {
    await using app = await startControl()
    await app.database.sql`
      with made as (
        insert into users (name, email) select 'x', n || '@crowd.example' from generate_series(1, 4997) n returning id
      ) insert into members (organization_id, user_id, role) select ${organizations.ours}, id, 'member' from made`
    assert.equal(await join(app, userId('member')), false)
    await assert.rejects(join(app, userId('stranger')), { code: 'forbidden' })
    await app.database.sql`delete from members where user_id = ${userId('viewer')}`
    assert.equal(await join(app, userId('stranger')), true)
  })
})
