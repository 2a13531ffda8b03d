// Three new people in two organizations use control only by HTTP, from the first sign-in to the removal of the last key. At every
// step, nobody sees data of an organization to which they do not belong.
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { type Client, startControl } from './harness.ts'
import { connectRunner } from './simulated-runner.ts'

const person = (name: string) => ({
  sub: name.toLowerCase(),
  name,
  email: `${name.toLowerCase()}@example.com`,
  email_verified: true,
})

const answered = async (status: number, asked: ReturnType<Client['get']>) => {
  const reply = await asked
  assert.equal(reply.status, status, reply.text)
  return reply.body
}

const names = (items: { name: string }[]) => items.map(({ name }) => name).sort()

suite('the first steps of new users', { timeout: 120_000 }, () => {
  test('a member sees nothing of other organizations, and an API key gives only its own permissions', async () => {
    await using app = await startControl({ sandboxes: { createWaitSeconds: 20 } })
    await using _runner = await connectRunner(app)
    const [ada, bob, cleo] = [person('Ada'), person('Bob'), person('Cleo')]

    // Control does not know these people until they sign in with a token. Control then makes a personal organization for each of
    // them.
    for (const newcomer of [ada, bob, cleo]) {
      const me = await answered(200, app.asNewcomer(newcomer).get('/users/me'))
      assert.deepEqual([me.name, me.email, me.emailVerified], [newcomer.name, newcomer.email, true])
      const own = await answered(200, app.asNewcomer(newcomer).get('/organizations'))
      assert.deepEqual([own.length, own[0].name, own[0].personal, own[0].createdBy], [1, 'Personal', true, me.id])
    }

    // Ada and Bob each make an organization. Neither of them sees the organization of the other.
    const found = async (founder: typeof ada, name: string) =>
      (await answered(201, app.asNewcomer(founder).post('/organizations', { name, defaultRegionId: 'local' }))).id
    const acme: string = await found(ada, 'Acme')
    const globex: string = await found(bob, 'Globex')
    const adaInAcme = app.asNewcomer(ada, acme)
    const bobInGlobex = app.asNewcomer(bob, globex)
    assert.deepEqual(names(await answered(200, adaInAcme.get('/organizations'))), ['Acme', 'Personal'])
    assert.deepEqual(names(await answered(200, bobInGlobex.get('/organizations'))), ['Globex', 'Personal'])
    await answered(404, bobInGlobex.get(`/organizations/${acme}`))
    await answered(403, app.asNewcomer(bob, acme).get('/sandbox'))

    // Ada makes a role in Acme and invites Cleo with it. The email address has capital letters, as people often write it.
    const builder = { name: 'Builder', description: 'Makes sandboxes, reads the log.' }
    const role = await answered(
      201,
      adaInAcme.post(`/organizations/${acme}/roles`, {
        ...builder,
        permissions: ['write:sandboxes', 'read:audit_logs'],
      }),
    )
    const invitation = { email: 'Cleo@Example.COM', role: 'member', assignedRoleIds: [role.id] }
    const { id: invitationId } = await answered(201, adaInAcme.post(`/organizations/${acme}/invitations`, invitation))
    assert.deepEqual(await answered(200, bobInGlobex.get('/organizations/invitations')), [])
    await answered(404, bobInGlobex.post(`/organizations/invitations/${invitationId}/accept`))
    await answered(404, app.asNewcomer(cleo).get(`/organizations/${acme}`))
    assert.equal(await answered(200, app.asNewcomer(cleo).get('/organizations/invitations/count')), 1)
    await answered(200, app.asNewcomer(cleo).post(`/organizations/invitations/${invitationId}/accept`))
    assert.deepEqual(names(await answered(200, app.asNewcomer(cleo).get('/organizations'))), ['Acme', 'Personal'])

    // Cleo has the rights of her role: she can make a sandbox but not delete it. Only an owner can change members.
    const cleoInAcme = app.asNewcomer(cleo, acme)
    const box = await answered(200, cleoInAcme.post('/sandbox', { name: 'box' }))
    assert.equal(box.organizationId, acme)
    await answered(403, cleoInAcme.delete('/sandbox/box'))
    await answered(
      403,
      cleoInAcme.post(`/organizations/${acme}/invitations`, { ...invitation, email: 'd@example.com' }),
    )
    await answered(403, cleoInAcme.delete(`/organizations/${acme}`))
    assert.deepEqual(names((await answered(200, adaInAcme.get('/sandbox'))).items), ['box'])
    assert.deepEqual((await answered(200, bobInGlobex.get('/sandbox'))).items, [])
    assert.deepEqual((await answered(200, app.asNewcomer(cleo).get('/sandbox'))).items, [])
    for (const idOrName of ['box', box.id]) await answered(404, bobInGlobex.get(`/sandbox/${idOrName}`))

    // Cleo can give a key only permissions that she has. A key has only the permissions that it lists.
    await answered(403, cleoInAcme.post('/api-keys', { name: 'greedy', permissions: ['delete:sandboxes'] }))
    const made = await answered(201, cleoInAcme.post('/api-keys', { name: 'log', permissions: ['read:audit_logs'] }))
    const reader = app.with(made.value)
    assert.deepEqual(names(await answered(200, reader.get('/organizations'))), ['Acme'])
    assert.deepEqual(names((await answered(200, reader.get('/sandbox'))).items), ['box'])
    await answered(403, reader.post('/sandbox', {}))
    await answered(403, reader.post('/sandbox/box/stop'))
    await answered(403, reader.get('/sandbox/box/signing-key'))
    await answered(403, reader.post('/api-keys', { name: 'child', permissions: [] }))
    await answered(404, reader.get(`/organizations/${globex}`))
    await answered(404, reader.get(`/audit/organizations/${globex}`))

    // The audit log of Acme leaves out Bob's refused attempts, because Bob is no member.
    const log = await answered(200, reader.get(`/audit/organizations/${acme}`))
    const told = log.items.map((entry: Record<string, unknown>) => [
      entry['actorEmail'],
      entry['keyName'] ?? entry['credential'],
      entry['call'],
      entry['statusCode'],
    ])
    assert.deepEqual(told.reverse(), [
      [ada.email, 'jwt', 'POST /organizations', 201],
      [ada.email, 'jwt', 'POST /organizations/{organizationId}/roles', 201],
      [ada.email, 'jwt', 'POST /organizations/{organizationId}/invitations', 201],
      [cleo.email, 'jwt', 'POST /organizations/invitations/{invitationId}/accept', 200],
      [cleo.email, 'jwt', 'POST /sandbox', 200],
      [cleo.email, 'jwt', 'DELETE /sandbox/{sandboxIdOrName}', 403],
      [cleo.email, 'jwt', 'POST /organizations/{organizationId}/invitations', 403],
      [cleo.email, 'jwt', 'DELETE /organizations/{organizationId}', 403],
      [cleo.email, 'jwt', 'POST /api-keys', 403],
      [cleo.email, 'jwt', 'POST /api-keys', 201],
      [cleo.email, 'log', 'POST /sandbox', 403],
      [cleo.email, 'log', 'POST /sandbox/{sandboxIdOrName}/stop', 403],
      [cleo.email, 'log', 'POST /api-keys', 403],
    ])

    // None of the lists that Bob can get contains anything of Acme.
    const ofAcme = [
      acme,
      'Acme',
      box.id,
      role.id,
      'Builder',
      ada.email,
      cleo.email,
      `${'*'.repeat(20)}${made.value.slice(-3)}`,
    ]
    const lists = app.app.routes.filter(
      ({ method, path, socket }) => method === 'GET' && !socket && !path.includes(':'),
    )
    const ofGlobex = [
      `/organizations/${globex}`,
      `/organizations/${globex}/users`,
      `/organizations/${globex}/roles`,
      `/organizations/${globex}/invitations`,
      `/organizations/${globex}/usage`,
      `/audit/organizations/${globex}`,
    ]
    let seen = 0
    for (const path of [...lists.map((route) => route.path), ...ofGlobex]) {
      const { status, text } = await bobInGlobex.get(path)
      if (status === 200) seen += 1
      for (const word of ofAcme) assert.ok(!text.includes(word), `${path} shows Bob ${word}: ${text}`)
    }
    assert.ok(seen > 12, `Bob saw ${seen} lists`)

    // When the role is deleted, Cleo's key loses its permissions. When Cleo is removed from Acme, her key stops
    // working.
    const developer = '00000000-0000-0000-0000-000000000001'
    const { id: cleoId } = await answered(200, cleoInAcme.get('/users/me'))
    await answered(
      200,
      adaInAcme.post(`/organizations/${acme}/users/${cleoId}/access`, { role: 'member', assignedRoleIds: [developer] }),
    )
    await answered(403, reader.get(`/audit/organizations/${acme}`))
    await answered(403, cleoInAcme.get(`/audit/organizations/${acme}`))
    await answered(204, adaInAcme.delete(`/organizations/${acme}/users/${cleoId}`))
    await answered(401, reader.get('/sandbox'))
    await answered(403, cleoInAcme.get('/sandbox'))
    await answered(404, cleoInAcme.get(`/organizations/${acme}`))
    assert.deepEqual(names(await answered(200, app.asNewcomer(cleo).get('/organizations'))), ['Personal'])
    assert.deepEqual(names((await answered(200, adaInAcme.get('/sandbox'))).items), ['box'])
  })
})
