import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { startControl, type TestControl } from '#test/control/harness.ts'
import { keys, organizations } from '#test/control/people.ts'
import { connectRunner, untilState } from '#test/control/simulated-runner.ts'

const withBox = async (check: (app: TestControl, id: string) => Promise<void>) => {
  await using app = await startControl({ sandboxes: { createWaitSeconds: 20 } })
  await using _runner = await connectRunner(app)
  const { body } = await app.as('member').post('/sandbox', { name: 'box' })
  await check(app, body.id)
}

const make = async (app: TestControl, query = '', idOrName = 'box') => {
  const { status, body } = await app.as('member').post(`/sandbox/${idOrName}/ssh-access${query}`)
  assert.equal(status, 200, body.message)
  return body
}

const validate = async (app: TestControl, token: string, as: keyof typeof keys = 'member') =>
  (await app.as(as).get(`/sandbox/ssh-access/validate?token=${token}`)).body

const noToken = { valid: false, sandboxId: '' }

suite('POST /sandbox/{sandboxIdOrName}/ssh-access', () => {
  test('a new SSH token is valid for an hour, is returned with its SSH command, and is stored only as a hash', () =>
    withBox(async (app, id) => {
      const { token, id: accessId, ...rest } = await make(app)
      const now = app.clock.now()
      assert.match(token, /^ssh_[a-z0-9]{32}$/)
      assert.equal(typeof accessId, 'string')
      assert.deepEqual(rest, {
        sandboxId: id,
        createdAt: now.toISOString(),
        updatedAt: now.toISOString(),
        expiresAt: new Date(now.getTime() + 3_600_000).toISOString(),
        sshCommand: `ssh -p 3002 ${token}@ssh.test`,
      })
      const rows = await app.database.sql`select * from ssh_access`
      assert.ok(rows.length === 1 && !JSON.stringify(rows).includes(token))
    }))

  test('an SSH token can be valid for 1 minute to 7 days; any other lifetime answers 400', () =>
    withBox(async (app) => {
      for (const minutes of [1, 10_080]) {
        const { createdAt, expiresAt } = await make(app, `?expiresInMinutes=${minutes}`)
        assert.equal(Date.parse(expiresAt) - Date.parse(createdAt), minutes * 60_000)
      }
      for (const wrong of ['0', '-1', '1.5', '10081', 'soon', '1e9', '']) {
        const { status } = await app.as('member').post(`/sandbox/box/ssh-access?expiresInMinutes=${wrong}`)
        assert.equal(status, 400, wrong)
      }
    }))

  test('making an SSH token answers 403 to a viewer, 404 to a stranger and 401 to the SSH gateway', () =>
    withBox(async (app, id) => {
      assert.equal((await app.as('viewer').post('/sandbox/box/ssh-access')).status, 403)
      assert.equal((await app.as('stranger').post(`/sandbox/${id}/ssh-access`)).status, 404)
      assert.equal((await app.as('ssh-gateway').post(`/sandbox/${id}/ssh-access`)).status, 401)
    }))

  test('making a sandbox’s 101st valid SSH token answers 429, even in parallel calls', () =>
    withBox(async (app) => {
      const ask = () => app.as('member').post('/sandbox/box/ssh-access')
      const statuses = (await Promise.all(Array.from({ length: 105 }, ask))).map(({ status }) => status)
      assert.deepEqual(
        [200, 429].map((wanted) => statuses.filter((status) => status === wanted).length),
        [100, 5],
      )
      app.clock.advance({ seconds: 3600 })
      assert.equal((await ask()).status, 200)
      assert.equal((await app.database.sql`select 1 from ssh_access`).length, 1)
    }))

  test('the SSH command contains the SSH gateway of the sandbox’s region, if the region has one', () =>
    withBox(async (app, id) => {
      const commandAt = async (sshGatewayUrl: string, name: string) => {
        const region = (await app.as('owner').post('/regions', { name, sshGatewayUrl })).body
        await app.database.sql`update sandboxes set region_id = ${region.id} where id = ${id}`
        const { token, sshCommand } = await make(app)
        return sshCommand.replace(token, 'TOKEN')
      }
      assert.equal(await commandAt('http://10.0.0.5:2222', 'one'), 'ssh -p 2222 TOKEN@10.0.0.5')
      assert.equal(await commandAt('https://ssh.example.com', 'two'), 'ssh -p 22 TOKEN@ssh.example.com')
    }))

  test('on a server without an SSH gateway, making an SSH token answers 400', async () => {
    await using app = await startControl({ settings: { sshGateway: undefined }, sandboxes: { createWaitSeconds: 20 } })
    await using _runner = await connectRunner(app)
    await app.as('member').post('/sandbox', { name: 'box' })
    assert.equal((await app.as('member').post('/sandbox/box/ssh-access')).status, 400)
    assert.equal((await app.as('nobody').get('/config')).body.sshGatewayCommand, undefined)
  })
})

suite('DELETE /sandbox/{sandboxIdOrName}/ssh-access', () => {
  test('if the query names a token, revoking SSH access revokes that token, else all tokens of the sandbox', () =>
    withBox(async (app, id) => {
      await app.as('member').post('/sandbox', { name: 'other' })
      const [one, two, three] = [await make(app), await make(app), await make(app)]
      const other = await make(app, '', 'other')
      const valid = async () =>
        Promise.all([one, two, three, other].map(async ({ token }) => (await validate(app, token)).valid))
      const named = await app.as('member').delete(`/sandbox/box/ssh-access?token=${two.token}`)
      assert.deepEqual([named.status, named.body.id], [200, id])
      assert.deepEqual(await valid(), [true, false, true, true])
      assert.equal((await app.as('member').delete('/sandbox/box/ssh-access')).status, 200)
      assert.deepEqual(await valid(), [false, false, false, true])
      assert.equal((await app.as('member').delete('/sandbox/box/ssh-access')).status, 200)
    }))

  test('revoking an SSH token that the sandbox does not have answers 404 and revokes nothing', () =>
    withBox(async (app) => {
      await app.as('member').post('/sandbox', { name: 'other' })
      const { token } = await make(app, '', 'other')
      for (const wrong of [token, 'ssh_none', '%25']) {
        assert.equal((await app.as('member').delete(`/sandbox/box/ssh-access?token=${wrong}`)).status, 404, wrong)
      }
      assert.equal((await validate(app, token)).valid, true)
    }))
})

suite('GET /sandbox/ssh-access/validate', () => {
  test('members of a sandbox’s organization can validate its SSH token; for others the token is invalid', () =>
    withBox(async (app, id) => {
      const { token } = await make(app)
      assert.deepEqual(await validate(app, token, 'viewer'), { valid: true, sandboxId: id })
      assert.deepEqual(await validate(app, token, 'stranger'), noToken)
      for (const wrong of ['ssh_none', keys.member, '%25', "'"]) assert.deepEqual(await validate(app, wrong), noToken)
      assert.equal((await app.as('member').get('/sandbox/ssh-access/validate')).status, 400)
    }))

  test('the SSH gateway gets the sandbox’s state and the SSH token’s expiry; an expired SSH token is invalid', () =>
    withBox(async (app, id) => {
      const { token, expiresAt } = await make(app)
      const opened = { valid: true, sandboxId: id, expiresAt }
      assert.deepEqual(await validate(app, token, 'ssh-gateway'), { ...opened, state: 'started' })
      await app.as('member').post('/sandbox/box/stop')
      await untilState(app, id, 'stopped')
      assert.deepEqual(await validate(app, token, 'ssh-gateway'), { ...opened, state: 'stopped' })
      app.clock.advance({ seconds: 3600 })
      assert.deepEqual(await validate(app, token, 'ssh-gateway'), noToken)
    }))

  test('a region’s SSH gateway can validate only tokens of its region, until the gateway’s key is replaced', () =>
    withBox(async (app, id) => {
      const region = (await app.as('owner').post('/regions', { name: 'cellar', sshGatewayUrl: 'http://10.0.0.5:22' }))
        .body
      const { token } = await make(app)
      const ask = (key: string) => app.with(key).get(`/sandbox/ssh-access/validate?token=${token}`)
      assert.deepEqual((await ask(region.sshGatewayApiKey)).body, noToken)
      await app.database.sql`update sandboxes set region_id = ${region.id} where id = ${id}`
      assert.equal((await ask(region.sshGatewayApiKey)).body.valid, true)
      await app.as('owner').post(`/regions/${region.id}/regenerate-ssh-gateway-api-key`)
      assert.equal((await ask(region.sshGatewayApiKey)).status, 401)
    }))

  test('an SSH token becomes invalid when its sandbox is deleted', () =>
    withBox(async (app, id) => {
      const { token } = await make(app)
      assert.equal((await app.as('owner').delete(`/sandbox/${id}`)).status, 200)
      assert.deepEqual(await validate(app, token, 'ssh-gateway'), noToken)
    }))
})

suite('POST /proxy/access with an SSH token', () => {
  const ask = async (app: TestControl, sandboxIdOrName: string, credential: object, port?: number) =>
    await app.as('proxy').post('/proxy/access', {
      sandboxIdOrName,
      credentials: [credential],
      countsAsActivity: false,
      ...(port === undefined ? {} : { port }),
    })

  test('an SSH token gives access to its sandbox’s toolbox, but to no port, and is refused as an API key', () =>
    withBox(async (app, id) => {
      const other = (await app.as('member').post('/sandbox', { name: 'other' })).body
      const { token } = await make(app)
      const { status, body } = await ask(app, id, { kind: 'ssh', token })
      assert.deepEqual([status, body.openedBy, body.organizationId], [200, 'ssh', organizations.ours])
      assert.equal((await ask(app, other.id, { kind: 'ssh', token })).status, 401)
      assert.equal((await ask(app, id, { kind: 'ssh', token }, 80)).status, 401)
      assert.equal((await ask(app, id, { kind: 'bearer', token })).status, 401)
      assert.equal((await ask(app, id, { kind: 'ssh', token: keys.owner })).status, 401)
    }))

  test('a revoked or expired SSH token gets 401, even for a connection that was admitted before', () =>
    withBox(async (app, id) => {
      const still = async (token: string) => {
        const question = { sandboxIdOrName: id, credentials: [{ kind: 'ssh', token }], countsAsActivity: false }
        return (await app.as('proxy').post('/proxy/access', { ...question, wasLetIn: true })).status
      }
      const [revoked, expired] = [await make(app), await make(app)]
      assert.deepEqual([await still(revoked.token), await still(expired.token)], [200, 200])
      await app.as('member').delete(`/sandbox/box/ssh-access?token=${revoked.token}`)
      assert.deepEqual([await still(revoked.token), await still(expired.token)], [401, 200])
      app.clock.advance({ seconds: 3600 })
      assert.equal(await still(expired.token), 401)
    }))
})
