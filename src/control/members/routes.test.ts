import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { lockMembership } from '#src/control/auth/change-membership.ts'
import { type AddedPerson, addPerson } from '#test/control/add-person.ts'
import { startControl, type TestControl } from '#test/control/harness.ts'
import { keys, organizations, userId } from '#test/control/people.ts'
import { allPermissions } from '../auth/permissions.ts'
import { developerRoleId } from '../roles/service.ts'

const organization = `/organizations/${organizations.ours}`
const users = `${organization}/users`
const auditorRoleId = '00000000-0000-0000-0000-000000000007'

type MemberView = { userId: string; role: string; assignedRoles: { id: string }[] }

const ownersOf = async (app: TestControl): Promise<string[]> => {
  const rows = await app.database.sql<{ user_id: string }[]>`
    select user_id from members where organization_id = ${organizations.ours} and role = 'owner'`
  return rows.map((row) => row.user_id)
}

const roleOf = async (app: TestControl, id: string): Promise<string | undefined> =>
  (await app.as('owner').get(users)).body.find((member: MemberView) => member.userId === id)?.role

const addOwners = async (app: TestControl, count: number): Promise<AddedPerson[]> => {
  const owners: AddedPerson[] = []
  for (let made = 0; made < count; made += 1) owners.push(await addPerson(app, { role: 'owner' }))
  return owners
}

const untilSomebodyWaits = async ({ database }: TestControl) => {
  const isWaiting = () => database.sql`
    select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
  while ((await isWaiting()).length === 0) await pause(5)
}

/** Makes an API key of the user `owner` with only these permissions. */
const narrowKey = async (app: TestControl, permissions: string[]) => {
  const reply = await app.as('owner').post('/api-keys', { name: `narrow ${permissions.length}`, permissions })
  assert.equal(reply.status, 201)
  return app.with(reply.body.value)
}

suite('GET /organizations/{organizationId}/users', () => {
  test('GET /organizations/{organizationId}/users returns all members with their roles to every member', async () => {
    await using app = await startControl()
    const reply = await app.as('viewer').get(users)
    assert.equal(reply.status, 200)
    assert.deepEqual(reply.body.map(({ email, role }: { email: string; role: string }) => [email, role]).sort(), [
      ['member@example.com', 'member'],
      ['owner@example.com', 'owner'],
      ['viewer@example.com', 'member'],
    ])
    const { createdAt, updatedAt, assignedRoles, ...plain } = reply.body.find(
      (member: MemberView) => member.userId === userId('member'),
    )
    assert.deepEqual(plain, {
      userId: userId('member'),
      organizationId: organizations.ours,
      name: 'member',
      email: 'member@example.com',
      role: 'member',
    })
    assert.ok(!Number.isNaN(Date.parse(createdAt)) && !Number.isNaN(Date.parse(updatedAt)))
    const developer = (await app.as('viewer').get(`${organization}/roles`)).body[0]
    assert.deepEqual(assignedRoles, [developer])
  })

  test('GET /organizations/{organizationId}/users answers 404 to strangers', async () => {
    await using app = await startControl()
    assert.equal((await app.as('stranger').get(users)).status, 404)
  })
})

suite('POST /organizations/{organizationId}/users/{userId}/access', () => {
  const access = (who: string) => `${users}/${who}/access`

  test('POST /organizations/{organizationId}/users/{userId}/access returns the member, and changes the permissions of the member’s keys immediately', async () => {
    await using app = await startControl()
    const reply = await app
      .as('owner')
      .post(access(userId('member')), { role: 'member', assignedRoleIds: [auditorRoleId, auditorRoleId] })
    assert.equal(reply.status, 200)
    assert.deepEqual(
      [reply.body.userId, reply.body.role, reply.body.assignedRoles.map(({ id }: { id: string }) => id)],
      [userId('member'), 'member', [auditorRoleId]],
    )
    assert.equal((await app.as('member').post('/sandbox', {})).status, 403)
    assert.deepEqual((await app.as('member').get('/api-keys/current')).body.permissions, [])
  })

  test('POST /organizations/{organizationId}/users/{userId}/access can make a member an owner, who has no roles', async () => {
    await using app = await startControl()
    const reply = await app
      .as('owner')
      .post(access(userId('member')), { role: 'owner', assignedRoleIds: [developerRoleId, 'no-such'] })
    assert.deepEqual([reply.status, reply.body.role, reply.body.assignedRoles], [200, 'owner', []])
    const role = { name: 'Mine', description: 'x', permissions: ['write:sandboxes'] }
    assert.equal((await app.asUser('member').post(`${organization}/roles`, role)).status, 201)
    // The key of this member lists only a member's permissions. This key cannot make a role, even after its user has become an
    // owner.
    assert.equal((await app.as('member').post(`${organization}/roles`, { ...role, name: 'Other' })).status, 403)
  })

  test('if an owner is demoted, their keys lose permissions, and do not regain them after a new promotion', async () => {
    await using app = await startControl()
    const other = await addPerson(app, { role: 'owner' })
    await app.as('owner').post(access(other.id), { role: 'member', assignedRoleIds: [developerRoleId] })
    assert.deepEqual((await app.with(other.key).get('/api-keys/current')).body.permissions, ['write:sandboxes'])
    assert.equal((await app.with(other.key).post(access(userId('member')), {})).status, 403)
    await app.as('owner').post(access(other.id), { role: 'owner', assignedRoleIds: [] })
    assert.deepEqual((await app.with(other.key).get('/api-keys/current')).body.permissions, ['write:sandboxes'])
  })

  test('POST /organizations/{organizationId}/users/{userId}/access answers 403 to callers who change their own access', async () => {
    await using app = await startControl()
    await addPerson(app, { role: 'owner' })
    const reply = await app.as('owner').post(access(userId('owner')), { role: 'member', assignedRoleIds: [] })
    assert.equal(reply.status, 403)
    assert.equal(await roleOf(app, userId('owner')), 'owner')
  })

  test('POST /organizations/{organizationId}/users/{userId}/access answers 403 to members who are not owners', async () => {
    await using app = await startControl()
    for (const id of [userId('viewer'), userId('member'), userId('owner')]) {
      const reply = await app.as('member').post(access(id), { role: 'owner', assignedRoleIds: [] })
      assert.equal(reply.status, 403, id)
    }
    assert.deepEqual(await ownersOf(app), [userId('owner')])
  })

  test('POST /organizations/{organizationId}/users/{userId}/access answers 403 to a key that lacks a permission', async () => {
    await using app = await startControl()
    const narrow = await narrowKey(app, ['write:sandboxes', 'read:audit_logs'])
    const ask = async (id: string, body: object) => (await narrow.post(access(id), body)).status
    const other = await addPerson(app, { role: 'owner' })
    assert.equal(await ask(userId('viewer'), { role: 'owner', assignedRoleIds: [] }), 403)
    assert.equal(await ask(other.id, { role: 'member', assignedRoleIds: [] }), 403)
    const snapshotsAdmin = '00000000-0000-0000-0000-000000000003'
    assert.equal(await ask(userId('viewer'), { role: 'member', assignedRoleIds: [snapshotsAdmin] }), 403)
    assert.equal(await ask(userId('viewer'), { role: 'member', assignedRoleIds: [auditorRoleId] }), 403)
    const all = await narrowKey(app, allPermissions)
    assert.equal((await all.post(access(userId('viewer')), { role: 'owner', assignedRoleIds: [] })).status, 200)
  })

  test('POST /organizations/{organizationId}/users/{userId}/access answers 404 for a user who is not a member, 400 for an unknown role', async () => {
    await using app = await startControl()
    const body = { role: 'member', assignedRoleIds: [] }
    for (const id of [userId('stranger'), 'no-such'])
      assert.equal((await app.as('owner').post(access(id), body)).status, 404)
    const role = { name: 'Theirs', description: 'x', permissions: ['write:sandboxes'] }
    const theirs = (await app.as('stranger').post(`/organizations/${organizations.theirs}/roles`, role)).body.id
    for (const roleId of [theirs, 'no-such', '']) {
      const reply = await app
        .as('owner')
        .post(access(userId('viewer')), { role: 'member', assignedRoleIds: [developerRoleId, roleId] })
      assert.equal(reply.status, 400, roleId)
    }
    assert.equal((await app.as('owner').get(users)).body.length, 3)
    assert.equal((await app.as('viewer').post('/sandbox', {})).status, 403)
  })

  test('POST /organizations/{organizationId}/users/{userId}/access answers 400 for an invalid body', async () => {
    await using app = await startControl()
    const bodies = [
      {},
      { role: 'member' },
      { assignedRoleIds: [] },
      { role: 'admin', assignedRoleIds: [] },
      { role: 'member', assignedRoleIds: 'x' },
      { role: 'member', assignedRoleIds: [7] },
      { role: 'member', assignedRoleIds: Array.from({ length: 251 }, () => developerRoleId) },
    ]
    for (const body of bodies)
      assert.equal((await app.as('owner').post(access(userId('viewer')), body)).status, 400, JSON.stringify(body))
  })

  test('if 50 owners demote each other at the same time, at least one owner remains', async () => {
    await using app = await startControl()
    const owners = await addOwners(app, 25)
    await app.database.sql`delete from members where user_id = ${userId('owner')}`
    const body = { role: 'member', assignedRoleIds: [] }
    const replies = await Promise.all(
      owners.flatMap(({ key }, index) =>
        [1, 7].map((step) => app.with(key).post(access(owners[(index + step) % owners.length]!.id), body)),
      ),
    )
    assert.deepEqual([...new Set(replies.map(({ status }) => status))].sort(), [200, 403])
    assert.ok((await ownersOf(app)).length >= 1, 'nobody is left')
  })

  test('changing a member’s access answers 403 if the caller is demoted before the change is written', async () => {
    await using app = await startControl()
    const [asker, target] = await addOwners(app, 2)
    const body = { role: 'member', assignedRoleIds: [] }
    const asked = await app.database.transaction(async (transaction) => {
      await lockMembership(transaction, organizations.ours)
      const call = app.with(asker!.key).post(access(target!.id), body)
      await untilSomebodyWaits(app)
      await transaction`update members set role = 'member' where user_id = ${asker!.id}`
      return { call }
    })
    assert.equal((await asked.call).status, 403)
    assert.ok((await ownersOf(app)).includes(target!.id))
  })
})

suite('DELETE /organizations/{organizationId}/users/{userId}', () => {
  test('DELETE /organizations/{organizationId}/users/{userId} makes the member’s API keys of this organization invalid, and no other keys', async () => {
    await using app = await startControl()
    await app.database.sql`
      insert into members (organization_id, user_id, role) values (${organizations.theirs}, ${userId('member')}, 'member')`
    assert.equal((await app.as('member').get('/users/me')).status, 200)
    const reply = await app.as('owner').delete(`${users}/${userId('member')}`)
    assert.deepEqual([reply.status, reply.text], [204, ''])
    assert.equal((await app.as('member').get('/users/me')).status, 401)
    assert.equal(
      (await app.as('owner').get('/api-keys')).body.some(({ name }: { name: string }) => name === 'member'),
      false,
    )
    assert.equal((await app.as('owner').delete(`${users}/${userId('member')}`)).status, 404)
    const theirs = (await app.as('stranger').get(`/organizations/${organizations.theirs}/users`)).body
    assert.ok(theirs.some((member: MemberView) => member.userId === userId('member')))
  })

  test('DELETE /organizations/{organizationId}/users/{userId} answers 403 to members, to keys that lack a permission, and for the caller’s own id', async () => {
    await using app = await startControl()
    assert.equal((await app.as('owner').delete(`${users}/${userId('owner')}`)).status, 403)
    assert.equal((await app.as('member').delete(`${users}/${userId('viewer')}`)).status, 403)
    const narrow = await narrowKey(app, [])
    assert.equal((await narrow.delete(`${users}/${userId('member')}`)).status, 403)
    assert.equal((await narrow.delete(`${users}/${userId('viewer')}`)).status, 403)
    assert.equal((await app.as('owner').get(users)).body.length, 3)
  })

  test('DELETE /organizations/{organizationId}/users/{userId} answers 404 for another organization’s member, and removes nobody', async () => {
    await using app = await startControl()
    assert.equal((await app.as('owner').delete(`${users}/${userId('stranger')}`)).status, 404)
    assert.equal((await app.as('stranger').get('/users/me')).status, 200)
  })
})

suite('POST /organizations/{organizationId}/leave', () => {
  const leave = `${organization}/leave`

  test('POST /organizations/{organizationId}/leave ends the membership, and makes the caller’s API keys of this organization invalid', async () => {
    await using app = await startControl()
    const reply = await app.as('member').post(leave)
    assert.deepEqual([reply.status, reply.text], [204, ''])
    assert.equal((await app.as('member').get('/users/me')).status, 401)
    assert.equal(await roleOf(app, userId('member')), undefined)
  })

  test('POST /organizations/{organizationId}/leave answers 403 to the last owner, until another member becomes an owner', async () => {
    await using app = await startControl()
    assert.equal((await app.as('owner').post(leave)).status, 403)
    await addPerson(app, { role: 'owner' })
    assert.equal((await app.as('owner').post(leave)).status, 204)
  })

  test('POST /organizations/{organizationId}/leave answers 403 in a personal organization', async () => {
    await using app = await startControl()
    const { id } = (await app.as('admin').get('/organizations')).body[0]
    await addPerson(app, { organizationId: id, role: 'owner' })
    assert.equal((await app.as('admin').post(`/organizations/${id}/leave`)).status, 403)
  })

  test('POST /organizations/{organizationId}/leave answers 403 to a key with fewer permissions than its user, 404 to strangers', async () => {
    await using app = await startControl()
    const { key } = await addPerson(app, { roleIds: [developerRoleId] })
    assert.equal((await app.with(key).post(leave)).status, 403)
    assert.equal((await app.with(key).get('/users/me')).status, 200)
    assert.equal((await app.as('stranger').post(leave)).status, 404)
    assert.equal((await app.with(keys.stranger).get('/users/me')).status, 200)
  })

  test('if all 50 owners leave at the same time, exactly one is refused and stays', async () => {
    await using app = await startControl()
    const owners = await addOwners(app, 49)
    const replies = await Promise.all([
      app.as('owner').post(leave),
      ...owners.map(({ key }) => app.with(key).post(leave)),
    ])
    assert.equal(replies.filter(({ status }) => status === 204).length, 49)
    assert.equal(replies.filter(({ status }) => status === 403).length, 1)
    assert.equal((await ownersOf(app)).length, 1)
  })
})
