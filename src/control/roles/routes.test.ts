import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { addPerson } from '#test/control/add-person.ts'
import { startControl, type TestControl } from '#test/control/harness.ts'
import { organizations, userId } from '#test/control/people.ts'
import { developerRoleId } from './service.ts'

const roles = `/organizations/${organizations.ours}/roles`
const builder = { name: 'Builder', description: 'Builds images.', permissions: ['write:snapshots'] }

const makeRole = async (app: TestControl, body: object = builder): Promise<string> => {
  const reply = await app.as('owner').post(roles, body)
  assert.equal(reply.status, 201, reply.text)
  return reply.body.id
}

/** Adds a member with this role. The member's key lists the permissions `delete:snapshots` and `write:snapshots`. */
const addBuilder = async (app: TestControl, roleId: string) =>
  await addPerson(app, { roleIds: [roleId], permissions: ['delete:snapshots', 'write:snapshots'] })

const keyListsOf = async (app: TestControl, key: string): Promise<string[]> =>
  (await app.with(key).get('/api-keys/current')).body.permissions

/** Names that a role must not have: they are invalid or could mislead a reader. */
const noNames = ['', '  ', 'a\nb', 'nul\u0000', '<i>x</i>', 'http://x', 'www.x', '\u202egnp', 'x'.repeat(256), 7, null]

suite('POST /organizations/{organizationId}/roles', () => {
  test('POST /organizations/{organizationId}/roles returns the role without duplicate permissions; members can see the role', async () => {
    await using app = await startControl()
    const reply = await app.as('owner').post(roles, {
      ...builder,
      name: ' Builder ',
      permissions: ['write:snapshots', 'write:snapshots'],
      isGlobal: true,
    })
    const { id, createdAt, updatedAt, ...rest } = reply.body
    assert.equal(reply.status, 201)
    assert.deepEqual(rest, { ...builder, isGlobal: false })
    assert.deepEqual([createdAt, updatedAt], [app.clock.now().toISOString(), app.clock.now().toISOString()])
    const listed = (await app.as('viewer').get(roles)).body
    assert.deepEqual(
      listed.find((role: { id: string }) => role.id === id),
      reply.body,
    )
  })

  test('POST /organizations/{organizationId}/roles answers 409 for the name of a global role or of a role that the organization has', async () => {
    await using app = await startControl()
    await makeRole(app)
    assert.equal((await app.as('owner').post(roles, builder)).status, 409)
    assert.equal((await app.as('owner').post(roles, { ...builder, name: 'DEVELOPER' })).status, 409)
    const theirs = await app.as('stranger').post(`/organizations/${organizations.theirs}/roles`, builder)
    assert.equal(theirs.status, 201)
  })

  test('of several simultaneous calls that make a role of one name, one succeeds and the others get 409', async () => {
    await using app = await startControl()
    const replies = await Promise.all(Array.from({ length: 12 }, () => app.as('owner').post(roles, builder)))
    const statuses = replies.map(({ status }) => status).sort()
    assert.deepEqual(statuses, [201, ...Array.from({ length: 11 }, () => 409)])
  })

  test('POST /organizations/{organizationId}/roles answers 403 to members, and to keys that lack a permission', async () => {
    await using app = await startControl()
    assert.equal((await app.as('member').post(roles, builder)).status, 403)
    const made = await app.as('owner').post('/api-keys', { name: 'narrow', permissions: ['write:sandboxes'] })
    const narrow = app.with(made.body.value)
    assert.equal((await narrow.post(roles, builder)).status, 403)
    assert.equal((await narrow.post(roles, { ...builder, permissions: ['write:sandboxes'] })).status, 403)
  })

  test('POST /organizations/{organizationId}/roles answers 403 for the 201st role of an organization', async () => {
    await using app = await startControl()
    await app.database.sql`
      insert into roles (organization_id, name, description, permissions)
      select ${organizations.ours}, 'role ' || n, 'x', '{write:sandboxes}' from generate_series(1, 200) n`
    assert.equal((await app.as('owner').post(roles, builder)).status, 403)
    assert.equal((await app.as('stranger').post(`/organizations/${organizations.theirs}/roles`, builder)).status, 201)
  })

  test('POST /organizations/{organizationId}/roles answers 400 for an invalid name, description or permission', async () => {
    await using app = await startControl()
    const bodies: unknown[] = [
      {},
      [],
      null,
      { name: 'x', permissions: ['write:sandboxes'] },
      { name: 'x', description: 'x' },
      { ...builder, permissions: [] },
      { ...builder, permissions: ['write:everything'] },
      { ...builder, permissions: ['write:snapshots', 'owner'] },
      { ...builder, permissions: 'write:snapshots' },
      ...noNames.flatMap((name) => [
        { ...builder, name },
        { ...builder, description: name },
      ]),
    ]
    for (const body of bodies) assert.equal((await app.as('owner').post(roles, body)).status, 400, JSON.stringify(body))
    assert.equal((await app.as('owner').get(roles)).body.length, 9)
  })
})

suite('GET /organizations/{organizationId}/roles', () => {
  test('GET /organizations/{organizationId}/roles lists the nine global roles, then the organization’s own roles', async () => {
    await using app = await startControl()
    await app.as('stranger').post(`/organizations/${organizations.theirs}/roles`, builder)
    await makeRole(app, { ...builder, name: 'Second' })
    const reply = await app.as('viewer').get(roles)
    assert.equal(reply.status, 200)
    const seen = reply.body.map(({ name, isGlobal }: { name: string; isGlobal: boolean }) => [name, isGlobal])
    const globals = ['Developer', 'Sandboxes Admin', 'Snapshots Admin', 'Registries Admin', 'Super Admin']
    const more = ['Volumes Admin', 'Auditor', 'Infrastructure Admin', 'SSO Admin']
    assert.deepEqual(seen, [...[...globals, ...more].map((name) => [name, true]), ['Second', false]])
  })

  test('GET /organizations/{organizationId}/roles answers 404 to strangers', async () => {
    await using app = await startControl()
    assert.equal((await app.as('stranger').get(roles)).status, 404)
  })
})

suite('PUT /organizations/{organizationId}/roles/{roleId}', () => {
  test('PUT /organizations/{organizationId}/roles/{roleId} changes the permissions of all members with the role immediately', async () => {
    await using app = await startControl()
    const id = await makeRole(app)
    const { key } = await addBuilder(app, id)
    app.clock.advance({ seconds: 5 })
    const changed = { name: 'Remover', description: 'Removes images.', permissions: ['delete:snapshots'] }
    const reply = await app.as('owner').put(`${roles}/${id}`, changed)
    const { createdAt, updatedAt, ...rest } = reply.body
    assert.deepEqual([reply.status, rest], [200, { ...changed, id, isGlobal: false }])
    assert.equal(updatedAt, app.clock.now().toISOString())
    assert.notEqual(createdAt, updatedAt)
    assert.deepEqual(await keyListsOf(app, key), ['delete:snapshots'])
    // The role gets the permission back, but the member's key does not.
    await app.as('owner').put(`${roles}/${id}`, { ...changed, permissions: ['write:snapshots', 'delete:snapshots'] })
    assert.deepEqual(await keyListsOf(app, key), ['delete:snapshots'])
  })

  test('PUT /organizations/{organizationId}/roles/{roleId} answers 409 for another role’s name, and 200 for the role’s present name', async () => {
    await using app = await startControl()
    const id = await makeRole(app)
    await makeRole(app, { ...builder, name: 'Other' })
    assert.equal((await app.as('owner').put(`${roles}/${id}`, { ...builder, name: 'Other' })).status, 409)
    assert.equal((await app.as('owner').put(`${roles}/${id}`, { ...builder, name: 'Auditor' })).status, 409)
    assert.equal((await app.as('owner').put(`${roles}/${id}`, builder)).status, 200)
  })

  test('PUT /organizations/{organizationId}/roles/{roleId} answers 403 for a global role, to members, and to keys that lack a permission', async () => {
    await using app = await startControl()
    const id = await makeRole(app)
    assert.equal((await app.as('owner').put(`${roles}/${developerRoleId}`, builder)).status, 403)
    assert.equal((await app.as('member').put(`${roles}/${id}`, builder)).status, 403)
    const made = await app.as('owner').post('/api-keys', { name: 'narrow', permissions: ['write:sandboxes'] })
    const narrow = { ...builder, permissions: ['write:sandboxes'] }
    assert.equal((await app.with(made.body.value).put(`${roles}/${id}`, narrow)).status, 403)
    const [role] = await app.database.sql`select name, permissions from roles where id = ${id}`
    assert.deepEqual({ ...role }, { name: 'Builder', permissions: ['write:snapshots'] })
  })

  test('PUT /organizations/{organizationId}/roles/{roleId} answers 404 for another organization’s role, 400 for an incomplete body', async () => {
    await using app = await startControl()
    const theirs = await app.as('stranger').post(`/organizations/${organizations.theirs}/roles`, builder)
    for (const id of [theirs.body.id, 'no-such', '00000000-0000-0000-0000-000000000099']) {
      assert.equal((await app.as('owner').put(`${roles}/${id}`, builder)).status, 404, id)
    }
    assert.equal((await app.as('stranger').put(`${roles}/${theirs.body.id}`, builder)).status, 404)
    const id = await makeRole(app)
    assert.equal((await app.as('owner').put(`${roles}/${id}`, { name: 'x' })).status, 400)
  })
})

suite('DELETE /organizations/{organizationId}/roles/{roleId}', () => {
  test('DELETE /organizations/{organizationId}/roles/{roleId} removes from members and keys only the permissions of this role', async () => {
    await using app = await startControl()
    const id = await makeRole(app)
    const { id: user, key } = await addPerson(app, {
      roleIds: [id, developerRoleId],
      permissions: ['write:snapshots', 'write:sandboxes'],
    })
    const reply = await app.as('owner').delete(`${roles}/${id}`)
    assert.deepEqual([reply.status, reply.text], [204, ''])
    assert.deepEqual(await keyListsOf(app, key), ['write:sandboxes'])
    const members = (await app.as('owner').get(`/organizations/${organizations.ours}/users`)).body
    const member = members.find((each: { userId: string }) => each.userId === user)
    assert.deepEqual(
      member.assignedRoles.map((role: { id: string }) => role.id),
      [developerRoleId],
    )
    assert.equal((await app.as('owner').delete(`${roles}/${id}`)).status, 404)
    // An owner without roles can have a key with all 21 permissions.
    assert.equal((await keyListsOf(app, (await addPerson(app, { role: 'owner' })).key)).length, 21)
  })

  test('DELETE /organizations/{organizationId}/roles/{roleId} answers 403 for a global role and to members, 404 for another organization’s role', async () => {
    await using app = await startControl()
    const theirs = await app.as('stranger').post(`/organizations/${organizations.theirs}/roles`, builder)
    assert.equal((await app.as('owner').delete(`${roles}/${developerRoleId}`)).status, 403)
    assert.equal((await app.as('owner').delete(`${roles}/${theirs.body.id}`)).status, 404)
    assert.equal((await app.as('member').delete(`${roles}/${await makeRole(app)}`)).status, 403)
    const [count] = await app.database.sql`select count(*) from member_roles where user_id = ${userId('member')}`
    assert.equal(count?.['count'], 1)
    assert.equal((await app.as('owner').get(roles)).body.length, 10)
  })
})
