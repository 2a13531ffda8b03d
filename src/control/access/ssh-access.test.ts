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
  test('200 returns a token and its command once, valid for an hour, and stores only a hash of the token', () =>
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

  test('200 for a lifetime from a minute to a week; 400 for any other', () =>
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

  test('403 without the permission to write sandboxes, 404 for a sandbox of another organization', () =>
    withBox(async (app, id) => {
      assert.equal((await app.as('viewer').post('/sandbox/box/ssh-access')).status, 403)
      assert.equal((await app.as('stranger').post(`/sandbox/${id}/ssh-access`)).status, 404)
      assert.equal((await app.as('ssh-gateway').post(`/sandbox/${id}/ssh-access`)).status, 401)
    }))

  test('429 for the 101st valid token of a sandbox, also among many calls at once; expired ones do not count', () =>
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

  test('200 names the gateway of the sandbox’s region, if the region has one', () =>
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

  test('400 on a server without an SSH gateway', async () => {
    await using app = await startControl({ settings: { sshGateway: undefined }, sandboxes: { createWaitSeconds: 20 } })
    await using _runner = await connectRunner(app)
    await app.as('member').post('/sandbox', { name: 'box' })
    assert.equal((await app.as('member').post('/sandbox/box/ssh-access')).status, 400)
    assert.equal((await app.as('nobody').get('/config')).body.sshGatewayCommand, undefined)
  })
})

suite('DELETE /sandbox/{sandboxIdOrName}/ssh-access', () => {
  test('200 revokes the named token, or all tokens of the sandbox, and returns the sandbox', () =>
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

  test('404 for a token that the sandbox does not have; the token of another sandbox stays', () =>
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
  test('200 names the sandbox to members of its organization; to others the token is not valid', () =>
    withBox(async (app, id) => {
      const { token } = await make(app)
      assert.deepEqual(await validate(app, token, 'viewer'), { valid: true, sandboxId: id })
      assert.deepEqual(await validate(app, token, 'stranger'), noToken)
      for (const wrong of ['ssh_none', keys.member, '%25', "'"]) assert.deepEqual(await validate(app, wrong), noToken)
      assert.equal((await app.as('member').get('/sandbox/ssh-access/validate')).status, 400)
    }))

  test('200 tells the gateway also the state and the expiry; the token ends when it expires', () =>
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

  test('the key of a region’s gateway works for that region only, and until it is replaced', () =>
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

  test('a token ends with its sandbox', () =>
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

  test('200 for its sandbox as an SSH token; 401 for another sandbox, for a port, and as an API key', () =>
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

  test('401 as soon as the token is revoked or has expired, also for a call that was let in before', () =>
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
