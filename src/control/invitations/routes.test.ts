import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { type AddedPerson, addPerson, type PersonOptions } from '#test/control/add-person.ts'
import { startControl, type TestControl } from '#test/control/harness.ts'
import { organizations } from '#test/control/people.ts'
import type { MailTransport, OutgoingMail } from '../mail/transport.ts'
import { developerRoleId } from '../roles/service.ts'

const invitations = `/organizations/${organizations.ours}/invitations`
const own = '/organizations/invitations'
const auditorRoleId = '00000000-0000-0000-0000-000000000007'
const day = 86_400_000

const invite = async (app: TestControl, body: object) => {
  const reply = await app.as('owner').post(invitations, body)
  assert.equal(reply.status, 201, reply.text)
  return reply.body
}

/** Adds a user who can be invited to the organization `ours`: a member of the organization `theirs` only. */
const addGuest = async (app: TestControl, options: PersonOptions = {}): Promise<AddedPerson> =>
  await addPerson(app, { organizationId: organizations.theirs, ...options })

/** Returns the role of a user in the organization `ours`, in an array that is empty if the user is no member. */
const rolesHere = async (app: TestControl, id: string): Promise<string[]> => {
  const rows = await app.database.sql<{ role: string }[]>`
    select role from members where user_id = ${id} and organization_id = ${organizations.ours}`
  return rows.map(({ role }) => role)
}

const narrowKey = async (app: TestControl, permissions: string[]) => {
  const reply = await app.as('owner').post('/api-keys', { name: `narrow ${permissions.length}`, permissions })
  assert.equal(reply.status, 201)
  return app.with(reply.body.value)
}

const remembering = (): { transport: MailTransport; sent: OutgoingMail[] } => {
  const sent: OutgoingMail[] = []
  return { sent, transport: { send: async (mail) => void sent.push(mail) } }
}

suite('POST /organizations/{organizationId}/invitations', () => {
  test('POST /organizations/{organizationId}/invitations stores the address in lower case and mails the invitation', async () => {
    const { transport, sent } = remembering()
    await using app = await startControl({ transport })
    const { id, assignedRoles, ...rest } = await invite(app, {
      email: ' Guest@Example.COM ',
      role: 'member',
      assignedRoleIds: [auditorRoleId],
      expiresAt: '2999-01-01T00:00:00+01:00',
    })
    const now = app.clock.now().toISOString()
    assert.deepEqual(rest, {
      email: 'guest@example.com',
      invitedBy: 'owner@example.com',
      organizationId: organizations.ours,
      organizationName: 'ours',
      expiresAt: '2998-12-31T23:00:00.000Z',
      status: 'pending',
      role: 'member',
      createdAt: now,
      updatedAt: now,
    })
    assert.deepEqual(
      assignedRoles.map((role: { id: string }) => role.id),
      [auditorRoleId],
    )
    await app.app.outbox.deliver()
    const [{ recipient, subject, text }] = sent as [OutgoingMail]
    assert.deepEqual([sent.length, recipient, subject], [1, 'guest@example.com', 'You are invited to ours'])
    assert.ok(text.includes(`http://control.test:3000/api/organizations/invitations/${id}/accept`), text)
  })

  test('an invitation lasts seven days and gives the role Developer by default; invited owners get no roles', async () => {
    await using app = await startControl()
    const plain = await invite(app, { email: 'a@example.com', expiresAt: null })
    assert.equal(Date.parse(plain.expiresAt) - app.clock.now().getTime(), 7 * day)
    assert.deepEqual([plain.role, plain.assignedRoles[0].name], ['member', 'Developer'])
    const none = await invite(app, { email: 'b@example.com', role: 'member', assignedRoleIds: [] })
    assert.deepEqual(none.assignedRoles, [])
    const owner = await invite(app, { email: 'c@example.com', role: 'owner', assignedRoleIds: [developerRoleId] })
    assert.deepEqual([owner.role, owner.assignedRoles], ['owner', []])
  })

  test('POST /organizations/{organizationId}/invitations answers 409 for the address of a member or an invited user, in any letter case', async () => {
    await using app = await startControl()
    const ask = async (email: string) => (await app.as('owner').post(invitations, { email })).status
    assert.equal(await ask('Member@EXAMPLE.com'), 409)
    const { id } = await invite(app, { email: 'guest@example.com' })
    assert.equal(await ask('GUEST@example.com'), 409)
    app.clock.advance({ hours: 7 * 24 })
    assert.equal(await ask('guest@example.com'), 201)
    assert.equal((await app.as('owner').get(invitations)).body.length, 1)
    const theirs = await app.as('stranger').post(`/organizations/${organizations.theirs}/invitations`, {
      email: 'guest@example.com',
    })
    assert.equal(theirs.status, 201)
    // The first invitation had expired, and was cancelled when the second invitation was made. A second cancel of the first
    // invitation answers 403.
    assert.equal((await app.as('owner').post(`${invitations}/${id}/cancel`)).status, 403)
  })

  test('if ten calls invite one address at the same time, one succeeds, nine get 409, and one mail is sent', async () => {
    const { transport, sent } = remembering()
    await using app = await startControl({ transport })
    const replies = await Promise.all(
      Array.from({ length: 10 }, () => app.as('owner').post(invitations, { email: 'guest@example.com' })),
    )
    assert.deepEqual(replies.map(({ status }) => status).sort(), [201, ...Array.from({ length: 9 }, () => 409)])
    await app.app.outbox.deliver()
    assert.equal(sent.length, 1)
  })

  test('POST /organizations/{organizationId}/invitations answers 403 to members, to keys that lack a permission, and in a personal organization', async () => {
    await using app = await startControl()
    assert.equal((await app.as('member').post(invitations, { email: 'a@example.com' })).status, 403)
    const narrow = await narrowKey(app, ['write:sandboxes'])
    const ask = async (body: object) => (await narrow.post(invitations, { email: 'a@example.com', ...body })).status
    assert.equal(await ask({ role: 'owner', assignedRoleIds: [] }), 403)
    assert.equal(await ask({ role: 'member', assignedRoleIds: [auditorRoleId] }), 403)
    assert.equal(await ask({}), 403)
    assert.deepEqual((await app.as('owner').get(invitations)).body, [])
    const { id } = (await app.as('admin').get('/organizations')).body[0]
    const reply = await app.as('admin').post(`/organizations/${id}/invitations`, { email: 'a@example.com' })
    assert.equal(reply.status, 403)
  })

  test('POST /organizations/{organizationId}/invitations answers 404 to strangers, and no mail is sent', async () => {
    const { transport, sent } = remembering()
    await using app = await startControl({ transport })
    assert.equal((await app.as('stranger').post(invitations, { email: 'a@example.com' })).status, 404)
    await app.app.outbox.deliver()
    assert.equal(sent.length, 0)
  })

  test('POST /organizations/{organizationId}/invitations answers 429 for the 11th mail a day to an address, 403 for an organization’s 1001st open invitation', async () => {
    await using app = await startControl()
    for (let made = 0; made < 10; made += 1) {
      const { id } = await invite(app, { email: 'guest@example.com' })
      await app.as('owner').post(`${invitations}/${id}/cancel`)
    }
    assert.equal((await app.as('owner').post(invitations, { email: 'guest@example.com' })).status, 429)
    app.clock.advance({ hours: 24 })
    await app.database.sql`
      insert into invitations (organization_id, email, invited_by, role, expires_at, created_at, updated_at)
      select ${organizations.ours}, n || '@example.com', 'x', 'member', '2999-01-01', '2020-01-01', '2020-01-01'
      from generate_series(1, 1000) n`
    assert.equal((await app.as('owner').post(invitations, { email: 'guest@example.com' })).status, 403)
  })

  test('POST /organizations/{organizationId}/invitations answers 400 for an invalid address, role or expiry', async () => {
    await using app = await startControl()
    const email = 'guest@example.com'
    const role = { name: 'Theirs', description: 'x', permissions: ['write:sandboxes'] }
    const theirs = (await app.as('stranger').post(`/organizations/${organizations.theirs}/roles`, role)).body.id
    const bodies: unknown[] = [
      {},
      [],
      null,
      { email: 7 },
      ...['', 'guest', 'a@b@c', 'a@b.c\r\nBcc: x@y.z', 'Guest <a@b.c>', 'a@b.c, x@y.z', 'ü@b.c'].map((wrong) => ({
        email: wrong,
      })),
      { email, role: 'admin' },
      { email, assignedRoleIds: ['no-such'] },
      { email, assignedRoleIds: [theirs] },
      { email, assignedRoleIds: 'x' },
      { email, expiresAt: '2001-01-01T00:00:00Z' },
      { email, expiresAt: app.clock.now().toISOString() },
      { email, expiresAt: 'tomorrow' },
      { email, expiresAt: 5 },
    ]
    for (const body of bodies) {
      assert.equal((await app.as('owner').post(invitations, body)).status, 400, JSON.stringify(body))
    }
    assert.deepEqual((await app.as('owner').get(invitations)).body, [])
  })
})

suite('GET /organizations/{organizationId}/invitations', () => {
  test('GET /organizations/{organizationId}/invitations returns open invitations, only to the organization’s members', async () => {
    await using app = await startControl()
    await invite(app, { email: 'first@example.com', expiresAt: new Date(app.clock.now().getTime() + day) })
    app.clock.advance({ seconds: 1 })
    const second = await invite(app, { email: 'second@example.com' })
    const cancelled = await invite(app, { email: 'third@example.com' })
    await app.as('owner').post(`${invitations}/${cancelled.id}/cancel`)
    await app.as('stranger').post(`/organizations/${organizations.theirs}/invitations`, { email: 'a@example.com' })
    const emails = async () =>
      (await app.as('viewer').get(invitations)).body.map(({ email }: { email: string }) => email)
    assert.deepEqual(await emails(), ['second@example.com', 'first@example.com'])
    app.clock.advance({ hours: 24 })
    assert.deepEqual((await app.as('viewer').get(invitations)).body, [second])
    assert.equal((await app.as('stranger').get(invitations)).status, 404)
  })
})

suite('PUT /organizations/{organizationId}/invitations/{invitationId}', () => {
  test('PUT /organizations/{organizationId}/invitations/{invitationId} changes the expiry, and the roles that a later accept gives', async () => {
    const { transport, sent } = remembering()
    await using app = await startControl({ transport })
    const guest = await addGuest(app)
    const { id, expiresAt } = await invite(app, { email: guest.email })
    await app.app.outbox.deliver()
    const change = { role: 'member', assignedRoleIds: [auditorRoleId] }
    const kept = await app.as('owner').put(`${invitations}/${id}`, change)
    assert.deepEqual([kept.status, kept.body.expiresAt, kept.body.assignedRoles[0].name], [200, expiresAt, 'Auditor'])
    const longer = await app.as('owner').put(`${invitations}/${id}`, { ...change, expiresAt: '2999-01-01T00:00:00Z' })
    assert.equal(longer.body.expiresAt, '2999-01-01T00:00:00.000Z')
    const accepted = await app.with(guest.key).post(`${own}/${id}/accept`)
    assert.deepEqual(accepted.body.assignedRoles, longer.body.assignedRoles)
    await app.app.outbox.deliver()
    assert.equal(sent.length, 1)
  })

  test('PUT /organizations/{organizationId}/invitations/{invitationId} answers 403 for an expired or closed invitation, and to members', async () => {
    await using app = await startControl()
    const change = { role: 'member', assignedRoleIds: [] }
    const put = async (id: string, body: object = change) =>
      (await app.as('owner').put(`${invitations}/${id}`, body)).status
    const cancelled = await invite(app, { email: 'a@example.com' })
    await app.as('owner').post(`${invitations}/${cancelled.id}/cancel`)
    assert.equal(await put(cancelled.id), 403)
    const { id } = await invite(app, { email: 'b@example.com', role: 'owner' })
    assert.equal((await app.as('member').put(`${invitations}/${id}`, change)).status, 403)
    const narrow = await narrowKey(app, ['write:sandboxes'])
    assert.equal((await narrow.put(`${invitations}/${id}`, change)).status, 403)
    assert.equal((await narrow.post(`${invitations}/${id}/cancel`)).status, 403)
    app.clock.advance({ hours: 7 * 24 })
    assert.equal(await put(id, { ...change, expiresAt: '2999-01-01T00:00:00Z' }), 403)
    assert.deepEqual((await app.as('owner').get(invitations)).body, [])
  })

  test('PUT /organizations/{organizationId}/invitations/{invitationId} answers 404 for another organization’s invitation, 400 for a bad body', async () => {
    await using app = await startControl()
    const theirs = await app.as('stranger').post(`/organizations/${organizations.theirs}/invitations`, {
      email: 'a@example.com',
    })
    const change = { role: 'owner', assignedRoleIds: [] }
    for (const id of [theirs.body.id, 'no-such']) {
      assert.equal((await app.as('owner').put(`${invitations}/${id}`, change)).status, 404)
    }
    const { id } = await invite(app, { email: 'b@example.com' })
    for (const body of [{}, { role: 'owner' }, { role: 'x', assignedRoleIds: [] }, { ...change, expiresAt: 'x' }]) {
      assert.equal((await app.as('owner').put(`${invitations}/${id}`, body)).status, 400, JSON.stringify(body))
    }
    const past = { role: 'member', assignedRoleIds: [], expiresAt: '2001-01-01T00:00:00Z' }
    assert.equal((await app.as('owner').put(`${invitations}/${id}`, past)).status, 400)
  })
})

suite('POST /organizations/{organizationId}/invitations/{invitationId}/cancel', () => {
  test('a cancelled invitation is hidden from the invited user, and its unsent mail is not sent', async () => {
    const sent: OutgoingMail[] = []
    let isAway = true
    const transport: MailTransport = {
      send: async (mail) => {
        if (isAway) throw new Error('away')
        sent.push(mail)
      },
    }
    await using app = await startControl({ transport })
    const guest = await addGuest(app)
    const { id } = await invite(app, { email: guest.email })
    await app.app.outbox.deliver()
    const reply = await app.as('owner').post(`${invitations}/${id}/cancel`)
    assert.deepEqual([reply.status, reply.text], [204, ''])
    assert.equal((await app.with(guest.key).post(`${own}/${id}/accept`)).status, 403)
    assert.deepEqual(await rolesHere(app, guest.id), [])
    isAway = false
    app.clock.advance({ hours: 1 })
    await app.app.outbox.deliver()
    assert.deepEqual(sent, [])
    assert.equal((await app.as('owner').post(`${invitations}/${id}/cancel`)).status, 403)
  })

  test('only an owner of the inviting organization can cancel an invitation: members get 403, strangers 404', async () => {
    await using app = await startControl()
    const { id } = await invite(app, { email: 'a@example.com' })
    assert.equal((await app.as('member').post(`${invitations}/${id}/cancel`)).status, 403)
    const cancel = `/organizations/${organizations.theirs}/invitations/${id}/cancel`
    assert.equal((await app.as('stranger').post(cancel)).status, 404)
    assert.equal((await app.as('owner').get(invitations)).body.length, 1)
  })
})

suite('GET /organizations/invitations, GET /organizations/invitations/count', () => {
  test('GET /organizations/invitations, GET /organizations/invitations/count return open invitations to the caller’s address', async () => {
    await using app = await startControl()
    const guest = await addGuest(app, { email: 'Grace.Hopper@Example.com' })
    const asGuest = app.with(guest.key)
    assert.deepEqual((await asGuest.get(own)).body, [])
    const made = await invite(app, { email: 'grace.HOPPER@example.COM' })
    await invite(app, { email: 'grace.hopper+x@example.com' })
    const [list, count] = [await asGuest.get(own), await asGuest.get(`${own}/count`)]
    assert.deepEqual([list.status, list.body, count.status, count.body], [200, [made], 200, 1])
    assert.equal((await app.as('viewer').get(`${own}/count`)).body, 0)
    app.clock.advance({ hours: 7 * 24 })
    assert.deepEqual([(await asGuest.get(own)).body, (await asGuest.get(`${own}/count`)).body], [[], 0])
  })

  test('a user whose e-mail address is unverified, or verified only by an SSO provider, sees no invitations', async () => {
    await using app = await startControl()
    for (const how of [{ emailVerified: false }, { emailVerifiedBy: 'sso' }] as const) {
      const guest = await addGuest(app, { email: `${Object.keys(how)}@example.com`, ...how })
      await invite(app, { email: guest.email })
      const asGuest = app.with(guest.key)
      assert.deepEqual([(await asGuest.get(own)).body, (await asGuest.get(`${own}/count`)).body], [[], 0])
    }
  })
})

suite('POST /organizations/invitations/{invitationId}/accept', () => {
  test('POST /organizations/invitations/{invitationId}/accept makes the caller a member with the invitation’s roles', async () => {
    await using app = await startControl()
    const guest = await addGuest(app, { email: 'Guest@Example.com' })
    const { id, ...made } = await invite(app, { email: 'guest@example.com', assignedRoleIds: [auditorRoleId] })
    app.clock.advance({ seconds: 5 })
    const reply = await app.with(guest.key).post(`${own}/${id}/accept`)
    const accepted = { ...made, id, status: 'accepted', updatedAt: app.clock.now().toISOString() }
    assert.deepEqual([reply.status, reply.body], [200, accepted])
    const members = (await app.as('owner').get(`/organizations/${organizations.ours}/users`)).body
    const member = members.find((each: { userId: string }) => each.userId === guest.id)
    assert.deepEqual([member.role, member.assignedRoles], ['member', made.assignedRoles])
    assert.deepEqual((await app.as('owner').get(invitations)).body, [])
    assert.deepEqual((await app.with(guest.key).get(own)).body, [])
  })

  test('a user may accept an invitation with a key of another organization, but the key gets no new access', async () => {
    await using app = await startControl()
    const { id: organizationId } = (await app.as('admin').get('/organizations')).body[0]
    const { id } = await invite(app, { email: 'admin@localhost', role: 'owner' })
    assert.equal((await app.as('admin').post(`${own}/${id}/accept`)).status, 200)
    const reached = (await app.as('admin').get('/organizations')).body
    assert.deepEqual(
      reached.map((organization: { id: string }) => organization.id),
      [organizationId],
    )
  })

  test('a new user may accept an invitation only with a verified e-mail address; the letter case may differ', async () => {
    await using app = await startControl()
    const { id } = await invite(app, { email: 'new@example.com', role: 'owner' })
    const claims = { sub: 'new', name: 'New', email: 'NEW@Example.com' }
    const unverified = app.asNewcomer({ ...claims, email_verified: false })
    assert.equal((await unverified.post(`${own}/${id}/accept`)).status, 403)
    app.clock.advance({ seconds: 1 })
    const verified = app.asNewcomer({ ...claims, email_verified: true })
    assert.equal((await verified.get(`${own}/count`)).body, 1)
    assert.equal((await verified.post(`${own}/${id}/accept`)).status, 200)
    const reached = (await verified.get('/organizations')).body.map(({ name }: { name: string }) => name)
    assert.deepEqual(reached.sort(), ['Personal', 'ours'])
    const role = { name: 'Mine', description: 'x', permissions: ['write:sandboxes'] }
    assert.equal((await verified.post(`/organizations/${organizations.ours}/roles`, role)).status, 201)
  })

  test('an invitation can be accepted once; twenty accepts at the same time make one membership', async () => {
    await using app = await startControl()
    const guest = await addGuest(app)
    const { id } = await invite(app, { email: guest.email })
    const accept = () => app.with(guest.key).post(`${own}/${id}/accept`)
    const replies = await Promise.all(Array.from({ length: 20 }, accept))
    assert.deepEqual(replies.map(({ status }) => status).sort(), [200, ...Array.from({ length: 19 }, () => 403)])
    assert.equal((await accept()).status, 403)
    assert.equal((await rolesHere(app, guest.id)).length, 1)
  })

  test('if an accept, a decline and a cancel arrive at the same time, exactly one succeeds', async () => {
    await using app = await startControl()
    for (let round = 0; round < 5; round += 1) {
      const guest = await addGuest(app)
      const { id } = await invite(app, { email: guest.email })
      const replies = await Promise.all([
        app.with(guest.key).post(`${own}/${id}/accept`),
        app.with(guest.key).post(`${own}/${id}/decline`),
        app.as('owner').post(`${invitations}/${id}/cancel`),
      ])
      const done = replies.flatMap(({ status }, index) => (status < 300 ? [index] : []))
      assert.equal(done.length, 1, replies.map(({ status }) => status).join())
      assert.equal((await rolesHere(app, guest.id)).length, done[0] === 0 ? 1 : 0)
    }
  })

  test('a key with fewer permissions than its user gets 403 for accepting or declining an invitation', async () => {
    await using app = await startControl()
    const guest = await addGuest(app, { role: 'owner', permissions: ['write:sandboxes'] })
    const { id } = await invite(app, { email: guest.email })
    for (const answer of ['accept', 'decline']) {
      assert.equal((await app.with(guest.key).post(`${own}/${id}/${answer}`)).status, 403)
    }
    assert.deepEqual(await rolesHere(app, guest.id), [])
    assert.equal((await app.with(guest.key).get(`${own}/count`)).body, 1)
  })

  test('accepting an invitation answers 409 to a member, and 403 if the invitation expired', async () => {
    await using app = await startControl()
    const guest = await addGuest(app)
    const { id } = await invite(app, { email: guest.email, role: 'owner' })
    await app.database.sql`
      insert into members (organization_id, user_id, role) values (${organizations.ours}, ${guest.id}, 'member')`
    assert.equal((await app.with(guest.key).post(`${own}/${id}/accept`)).status, 409)
    assert.deepEqual(await rolesHere(app, guest.id), ['member'])
    const late = await addGuest(app)
    const other = await invite(app, { email: late.email })
    app.clock.advance({ hours: 7 * 24 })
    const reply = await app.with(late.key).post(`${own}/${other.id}/accept`)
    assert.deepEqual([reply.status, reply.body.message], [403, 'This invitation has expired.'])
    assert.deepEqual(await rolesHere(app, late.id), [])
  })

  test('accepting an invitation answers 403 to users without a verified address, also for unknown ids', async () => {
    await using app = await startControl()
    // An address that only an organization's own identity provider has verified gives no access to other organizations.
    for (const how of [{ emailVerified: false }, { emailVerifiedBy: 'sso' }] as const) {
      const guest = await addGuest(app, { email: `${Object.keys(how)}@example.com`, ...how })
      const { id } = await invite(app, { email: guest.email })
      const [real, none] = await Promise.all(
        [id, 'no-such'].map((each) => app.with(guest.key).post(`${own}/${each}/accept`)),
      )
      assert.deepEqual([real?.status, none?.status], [403, 403])
      assert.equal(real?.body.message, none?.body.message)
      assert.deepEqual(await rolesHere(app, guest.id), [])
    }
  })

  test('accepting an invitation answers 404 to all but the invited user, even to the inviting owner', async () => {
    await using app = await startControl()
    const { id } = await invite(app, { email: 'kim@example.com', role: 'owner' })
    const lookAlike = await addGuest(app, { email: '\u212aim@example.com' })
    const tagged = await addGuest(app, { email: 'kim+x@example.com' })
    const callers = [
      app.as('owner'),
      app.as('member'),
      app.as('stranger'),
      app.with(lookAlike.key),
      app.with(tagged.key),
    ]
    for (const caller of callers) {
      for (const verb of ['accept', 'decline']) {
        const reply = await caller.post(`${own}/${id}/${verb}`)
        const missing = await caller.post(`${own}/no-such/${verb}`)
        assert.deepEqual([reply.status, reply.body.message], [404, missing.body.message])
      }
    }
    assert.equal((await app.as('owner').get(invitations)).body.length, 1)
  })

  test('accepting an invitation does not give a role that was deleted in the meantime', async () => {
    await using app = await startControl()
    const guest = await addGuest(app)
    const role = { name: 'Short', description: 'x', permissions: ['write:snapshots'] }
    const roleId = (await app.as('owner').post(`/organizations/${organizations.ours}/roles`, role)).body.id
    const { id } = await invite(app, { email: guest.email, assignedRoleIds: [roleId, auditorRoleId] })
    await app.as('owner').delete(`/organizations/${organizations.ours}/roles/${roleId}`)
    const reply = await app.with(guest.key).post(`${own}/${id}/accept`)
    assert.deepEqual([reply.status, reply.body.assignedRoles.length], [200, 1])
  })
})

suite('POST /organizations/invitations/{invitationId}/decline', () => {
  test('a user who declines an invitation does not become a member, and may be invited again', async () => {
    await using app = await startControl()
    const guest = await addGuest(app)
    const { id } = await invite(app, { email: guest.email })
    const reply = await app.with(guest.key).post(`${own}/${id}/decline`)
    assert.deepEqual([reply.status, reply.text], [200, ''])
    assert.equal((await app.with(guest.key).post(`${own}/${id}/decline`)).status, 403)
    assert.equal((await app.with(guest.key).post(`${own}/${id}/accept`)).status, 403)
    assert.deepEqual(await rolesHere(app, guest.id), [])
    await invite(app, { email: guest.email })
  })

  test('declining an expired invitation answers 403', async () => {
    await using app = await startControl()
    const guest = await addGuest(app)
    const { id } = await invite(app, { email: guest.email })
    app.clock.advance({ hours: 7 * 24 })
    assert.equal((await app.with(guest.key).post(`${own}/${id}/decline`)).status, 403)
  })
})

suite('closed and expired invitations', () => {
  test('invitations are deleted 30 days after they were closed or have expired; open invitations stay', async () => {
    await using app = await startControl()
    const count = async () => (await app.database.sql`select 1 from invitations`).length
    const { id } = await invite(app, { email: 'settled@example.com' })
    await app.as('owner').post(`${invitations}/${id}/cancel`)
    await invite(app, { email: 'expired@example.com' })
    await invite(app, { email: 'open@example.com', expiresAt: '2999-01-01T00:00:00Z' })
    app.clock.advance({ hours: 30 * 24 })
    await app.sweep()
    assert.equal(await count(), 3)
    app.clock.advance({ seconds: 1 })
    await app.sweep()
    assert.equal(await count(), 2)
    app.clock.advance({ hours: 7 * 24 })
    await app.sweep()
    assert.deepEqual([await count(), (await app.as('owner').get(invitations)).body.length], [1, 1])
    assert.equal((await app.as('owner').get(`/organizations/${organizations.ours}/users`)).body.length, 3)
  })
})
