import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { startControl, type TestControl } from '#test/control/harness.ts'
import { organizations, type Who } from '#test/control/people.ts'

const { ours, theirs } = organizations
const at = (path: string, organization: string = ours) => `/organizations/${organization}/${path}`
const see = async (app: TestControl) => (await app.as('owner').get(`/organizations/${ours}`)).body

/** Checks that callers who are not operators are refused, for their own organization and for other organizations. */
const checkOnlyOperators = async (app: TestControl, path: string, body: object) => {
  for (const who of ['owner', 'member', 'viewer', 'stranger'] satisfies Who[]) {
    for (const id of [ours, theirs, 'no-such'])
      assert.equal((await app.as(who).post(at(path, id), body)).status, 403, who)
  }
  assert.equal((await app.as('nobody').post(at(path), body)).status, 401)
  assert.equal((await app.as('admin').post(at(path, 'no-such'), body)).status, 404)
}

suite('PATCH /organizations/{organizationId}/default-region', () => {
  test('PATCH /organizations/{organizationId}/default-region sets the default region of an organization that has no default region', async () => {
    await using app = await startControl()
    await app.database.sql`update organizations set default_region_id = null where id = ${ours}`
    assert.equal((await see(app)).defaultRegionId, undefined)
    for (const _ of [1, 2]) {
      assert.equal((await app.as('owner').patch(at('default-region'), { defaultRegionId: 'local' })).status, 204)
    }
    assert.equal((await see(app)).defaultRegionId, 'local')
  })

  test('PATCH /organizations/{organizationId}/default-region can change the default region only if the operator allows that; else it answers 409', async () => {
    const ask = async (defaultRegionMayChange: boolean) => {
      await using app = await startControl({ settings: { defaultRegionMayChange } })
      await app.database.sql`
        insert into regions (id, name, organization_id, region_type) values ('ours_1', 'cellar', ${ours}, 'custom')`
      const reply = await app.as('owner').patch(at('default-region'), { defaultRegionId: 'ours_1' })
      return [reply.status, (await see(app)).defaultRegionId]
    }
    assert.deepEqual(await ask(false), [409, 'local'])
    assert.deepEqual(await ask(true), [204, 'ours_1'])
  })

  test('PATCH /organizations/{organizationId}/default-region answers the same 404 for another organization’s region and an unknown region', async () => {
    await using app = await startControl()
    await app.database.sql`
      insert into regions (id, name, organization_id, region_type) values ('theirs_1', 'cellar', ${theirs}, 'custom')`
    const [foreign, missing] = await Promise.all(
      ['theirs_1', 'no-such'].map((defaultRegionId) =>
        app.as('owner').patch(at('default-region'), { defaultRegionId }),
      ),
    )
    assert.deepEqual([foreign?.status, missing?.status], [404, 404])
    assert.equal(foreign?.body.message, missing?.body.message)
    for (const body of [{}, { defaultRegionId: null }, { defaultRegionId: 5 }]) {
      assert.equal((await app.as('owner').patch(at('default-region'), body)).status, 400)
    }
  })

  test('PATCH /organizations/{organizationId}/default-region answers 403 to members who are not owners, 404 to strangers', async () => {
    await using app = await startControl()
    const body = { defaultRegionId: 'local' }
    assert.equal((await app.as('member').patch(at('default-region'), body)).status, 403)
    assert.equal((await app.as('stranger').patch(at('default-region'), body)).status, 404)
  })
})

suite('PUT /organizations/{organizationId}/experimental-config', () => {
  const path = at('experimental-config')

  test('PUT /organizations/{organizationId}/experimental-config replaces the whole value; null or no body clears the value', async () => {
    await using app = await startControl()
    for (const config of [{ a: { deep: [1, null, 'ü'] }, __proto: 1 }, { b: true }, {}]) {
      const reply = await app.as('owner').put(path, config)
      assert.deepEqual([reply.status, reply.text], [200, ''])
      assert.deepEqual((await see(app)).experimentalConfig, config)
    }
    for (const payload of ['null', undefined]) {
      await app.as('owner').put(path, { c: 1 })
      assert.equal((await app.as('owner').send('PUT', path, payload)).status, 200)
      assert.equal((await see(app)).experimentalConfig, null)
    }
  })

  test('PUT /organizations/{organizationId}/experimental-config answers 400 for a non-object, the name "otel", or text that PostgreSQL cannot store', async () => {
    await using app = await startControl()
    for (const payload of [
      '[]',
      '"text"',
      '5',
      'true',
      '{"otel":{}}',
      '{"a":"\\u0000"}',
      '{"a\\u0000":1}',
      '{"a":"\\ud800"}',
    ]) {
      assert.equal((await app.as('owner').send('PUT', path, payload)).status, 400, payload)
    }
    const large = JSON.stringify({ a: 'x'.repeat(70_000) })
    assert.equal((await app.as('owner').send('PUT', path, large)).status, 413)
    assert.equal((await see(app)).experimentalConfig, null)
  })

  test('PUT /organizations/{organizationId}/experimental-config answers 403 to members who are not owners, 404 to strangers', async () => {
    await using app = await startControl()
    assert.equal((await app.as('member').put(path, {})).status, 403)
    assert.equal((await app.as('stranger').put(path, {})).status, 404)
  })
})

suite('POST /organizations/{organizationId}/suspend', () => {
  test('POST /organizations/{organizationId}/suspend makes creates and starts of sandboxes fail immediately, but not reads', async () => {
    await using app = await startControl()
    // Makes control cache the caller and the organization, which is not suspended yet.
    assert.equal((await see(app)).suspended, false)
    assert.equal((await app.as('admin').post(at('suspend'))).status, 204)
    const { suspended, suspendedAt, suspendedUntil, suspensionReason, suspensionCleanupGracePeriodHours } =
      await see(app)
    assert.deepEqual(
      [suspended, suspendedAt, suspendedUntil, suspensionReason, suspensionCleanupGracePeriodHours],
      [true, app.clock.now().toISOString(), null, null, 24],
    )
    const create = await app.as('owner').post('/sandbox', {})
    assert.deepEqual([create.status, create.body.message], [403, 'This organization is suspended.'])
  })

  test('POST /organizations/{organizationId}/suspend stores a reason, an end and a grace period, and the suspension ends by itself', async () => {
    await using app = await startControl()
    const begin = app.clock.now()
    const inSeconds = (seconds: number) => new Date(begin.getTime() + seconds * 1000).toISOString()
    const suspend = (body: object) => app.as('admin').post(at('suspend'), body)
    const first = { reason: 'unpaid', until: inSeconds(60), suspensionCleanupGracePeriodHours: 0 }
    assert.equal((await suspend(first)).status, 204)
    const during = await see(app)
    assert.deepEqual(
      [during.suspensionReason, during.suspendedUntil, during.suspensionCleanupGracePeriodHours],
      ['unpaid', inSeconds(60), 0],
    )
    app.clock.advance({ seconds: 30 })
    await suspend({ until: inSeconds(90) })
    const longer = await see(app)
    assert.deepEqual(
      [longer.suspendedAt, longer.suspendedUntil, longer.suspensionReason],
      [inSeconds(0), inSeconds(90), null],
    )
    app.clock.advance({ seconds: 60 })
    assert.equal((await see(app)).suspended, false)
    await suspend({})
    assert.equal((await see(app)).suspendedAt, inSeconds(90))
  })

  test('POST /organizations/{organizationId}/suspend answers 400 for an end in the past or a value of the wrong type', async () => {
    await using app = await startControl()
    const bodies = [
      { until: app.clock.now().toISOString() },
      { until: '2001-01-01T00:00:00Z' },
      { until: 'tomorrow' },
      { until: '+200000-01-01T00:00:00Z' },
      { until: 5 },
      { suspensionCleanupGracePeriodHours: -1 },
      { suspensionCleanupGracePeriodHours: 1e12 },
      { suspensionCleanupGracePeriodHours: '24' },
      { reason: {} },
      { reason: 'x'.repeat(1001) },
    ]
    for (const body of bodies) {
      assert.equal((await app.as('admin').post(at('suspend'), body)).status, 400, JSON.stringify(body))
    }
    assert.equal((await see(app)).suspended, false)
  })

  test('POST /organizations/{organizationId}/suspend answers 403 to users who are not operators, 404 for an unknown organization', async () => {
    await using app = await startControl()
    await checkOnlyOperators(app, 'suspend', {})
    assert.equal((await see(app)).suspended, false)
  })
})

suite('POST /organizations/{organizationId}/unsuspend', () => {
  test('POST /organizations/{organizationId}/unsuspend ends a suspension, and answers 204 even if the organization is not suspended', async () => {
    await using app = await startControl()
    const until = new Date(app.clock.now().getTime() + 3_600_000).toISOString()
    await app.as('admin').post(at('suspend'), { reason: 'x', until, suspensionCleanupGracePeriodHours: 1 })
    for (const _ of [1, 2]) assert.equal((await app.as('admin').post(at('unsuspend'))).status, 204)
    const { suspended, suspendedAt, suspendedUntil, suspensionReason, suspensionCleanupGracePeriodHours } =
      await see(app)
    assert.deepEqual(
      [suspended, suspendedAt, suspendedUntil, suspensionReason, suspensionCleanupGracePeriodHours],
      [false, null, null, null, 24],
    )
  })

  test('POST /organizations/{organizationId}/unsuspend answers 403 to users who are not operators', async () => {
    await using app = await startControl()
    await checkOnlyOperators(app, 'unsuspend', {})
  })
})

const switches = [
  ['sandbox-default-limited-network-egress', 'sandboxDefaultLimitedNetworkEgress', 'sandboxLimitedNetworkEgress'],
  ['preview-warning', 'previewWarningEnabled', 'previewWarningEnabled'],
  ['sso-enabled', 'ssoEnabled', 'ssoEnabled'],
] as const

suite('POST /organizations/{organizationId}/sandbox-default-limited-network-egress, POST /organizations/{organizationId}/preview-warning, POST /organizations/{organizationId}/sso-enabled', () => {
  for (const [path, given, shown] of switches) {
    test(`an operator can switch the setting ${shown} of an organization on and off`, async () => {
      await using app = await startControl()
      for (const value of [true, false]) {
        const reply = await app.as('admin').post(at(path), { [given]: value })
        assert.deepEqual([reply.status, reply.text], [204, ''])
        assert.equal((await see(app))[shown], value)
      }
    })

    test(`switching a feature of an organization answers 400 if ${given} is neither true nor false`, async () => {
      await using app = await startControl()
      for (const body of [undefined, {}, { [given]: 'true' }, { [given]: null }, { [given]: 1 }, { [shown]: 1 }]) {
        assert.equal((await app.as('admin').post(at(path), body)).status, 400)
      }
    })

    test(`POST ${path} answers 403 to users who are not operators`, async () => {
      await using app = await startControl()
      await checkOnlyOperators(app, path, { [given]: true })
      assert.equal((await see(app))[shown], false)
    })
  }
})
