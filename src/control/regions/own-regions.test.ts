import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { startControl, type TestControl } from '#test/control/harness.ts'
import { keys, organizations } from '#test/control/people.ts'
import { connectRunner } from '#test/control/simulated-runner.ts'
import { hashKey } from '../auth/secret.ts'

const { ours, theirs } = organizations
const all = {
  proxyUrl: 'https://proxy.example.com',
  sshGatewayUrl: 'http://10.0.0.5:2222',
  snapshotManagerUrl: 'https://snapshots.example.com/v2',
  otelEndpoint: 'https://otel.example.com',
}

const make = async (app: TestControl, body: object = { name: 'Cellar', ...all }) =>
  (await app.as('owner').post('/regions', body)).body

const stored = async ({ database: { sql } }: TestControl, id: string) => {
  const [row] = await sql`
    select proxy_key_hash, ssh_gateway_key_hash, snapshot_manager_username, snapshot_manager_password
    from regions where id = ${id}`
  return row ?? assert.fail('there is no such region')
}

const badUrls = [
  '',
  'example.com',
  'ftp://example.com',
  'http://169.254.169.254',
  'https://u:p@example.com',
  'http://[fe80::1]',
]

suite('POST /regions', () => {
  test('POST /regions makes a region of the organization, with credentials for gate, SSH gateway and snapshot manager', async () => {
    await using app = await startControl()
    const reply = await app.as('owner').post('/regions', { name: 'Cellar', ...all })
    assert.equal(reply.status, 201)
    const { id, proxyApiKey, sshGatewayApiKey, snapshotManagerUsername, snapshotManagerPassword } = reply.body
    assert.match(id, /^cellar_[0-9a-f]{10}$/)
    for (const key of [proxyApiKey, sshGatewayApiKey]) assert.match(key, /^dtn_[0-9a-f]{64}$/)
    assert.notEqual(proxyApiKey, sshGatewayApiKey)
    assert.ok(snapshotManagerUsername.length > 8 && snapshotManagerPassword.length >= 43)

    const row = await stored(app, id)
    assert.deepEqual(
      [row['proxy_key_hash'], row['ssh_gateway_key_hash']],
      [hashKey(proxyApiKey), hashKey(sshGatewayApiKey)],
    )
    const { encryption } = app.parts
    assert.equal(
      encryption.decrypt(`snapshot-manager:${id}`, row['snapshot_manager_password']),
      snapshotManagerPassword,
    )

    const seen = await app.as('viewer').get(`/regions/${id}`)
    const { createdAt, updatedAt, ...rest } = seen.body
    for (const date of [createdAt, updatedAt]) assert.equal(date, app.clock.now().toISOString())
    assert.deepEqual(rest, {
      id,
      name: 'Cellar',
      organizationId: ours,
      regionType: 'custom',
      savesStopped: false,
      ...all,
    })
  })

  test('POST /regions makes no credential for a service if the request has no URL for the service', async () => {
    await using app = await startControl()
    for (const body of [
      { name: 'a1' },
      { name: 'a2', proxyUrl: null, sshGatewayUrl: null, snapshotManagerUrl: null },
    ]) {
      const { id: _, ...secrets } = await make(app, body)
      assert.deepEqual(Object.values(secrets), [null, null, null, null])
    }
  })

  test('POST /regions answers 409 for a name in use, even with concurrent calls; other organizations may use the name', async () => {
    await using app = await startControl()
    const replies = await Promise.all(
      Array.from({ length: 10 }, () => app.as('owner').post('/regions', { name: 'cellar' })),
    )
    const statuses = replies.map(({ status }) => status).sort()
    assert.deepEqual(statuses, [201, ...Array(9).fill(409)])
    assert.equal((await app.as('stranger').post('/regions', { name: 'cellar' })).status, 201)
  })

  test('POST /regions answers 400 for an invalid name or URL', async () => {
    await using app = await startControl()
    const names = [
      '',
      'a',
      ' ab',
      'a b',
      'a/b',
      'ü-berlin',
      'a'.repeat(256),
      '<b>',
      'a\nb',
      5,
      null,
      undefined,
      {},
      ['ab'],
    ]
    for (const name of names) assert.equal((await app.as('owner').post('/regions', { name })).status, 400, String(name))
    for (const field of Object.keys(all)) {
      for (const url of [...badUrls, 5, {}]) {
        const reply = await app.as('owner').post('/regions', { name: 'cellar', [field]: url })
        assert.equal(reply.status, 400, `${field} ${url}`)
      }
    }
    for (const name of ['..', '-_', 'A.b_C-9', 'a'.repeat(255)]) {
      assert.equal((await app.as('owner').post('/regions', { name })).status, 201, name)
    }
  })

  test('POST /regions answers 403 without write:regions, and for an organization’s 101st region', async () => {
    await using app = await startControl()
    assert.equal((await app.as('member').post('/regions', { name: 'cellar' })).status, 403)
    await app.database.sql`
      insert into regions (id, name, organization_id, region_type)
      select 'r' || n, 'r' || n, ${ours}, 'custom' from generate_series(1, 99) n`
    const replies = await Promise.all(['x1', 'x2', 'x3'].map((name) => app.as('owner').post('/regions', { name })))
    assert.deepEqual(replies.map(({ status }) => status).sort(), [201, 403, 403])
  })
})

suite('PATCH /regions/{id}', () => {
  test('PATCH /regions/{id} changes the given fields; if a service’s URL is removed, its credential becomes invalid', async () => {
    await using app = await startControl()
    const { id } = await make(app)
    const before = await stored(app, id)
    const patch = async (body: object) => await app.as('owner').patch(`/regions/${id}`, body)
    const reply = await patch({ proxyUrl: 'https://other.example.com', name: 'renamed' })
    assert.deepEqual([reply.status, reply.text], [200, ''])
    assert.deepEqual(await stored(app, id), before)
    await patch({ sshGatewayUrl: null, snapshotManagerUrl: null, otelEndpoint: null })
    const { name, proxyUrl, sshGatewayUrl, snapshotManagerUrl, otelEndpoint } = (
      await app.as('owner').get(`/regions/${id}`)
    ).body
    assert.deepEqual(
      [name, proxyUrl, sshGatewayUrl, snapshotManagerUrl, otelEndpoint],
      ['Cellar', 'https://other.example.com', null, null, null],
    )
    assert.deepEqual(Object.values(await stored(app, id)), [before['proxy_key_hash'], null, null, null])
    // Sets the URL of the SSH gateway again after it was removed. The gateway's former key stays invalid.
    await patch({ sshGatewayUrl: all.sshGatewayUrl })
    assert.equal((await stored(app, id))['ssh_gateway_key_hash'], null)
    assert.equal((await patch({})).status, 200)
  })

  test('PATCH /regions/{id} answers 400 for invalid URLs, and changes nothing', async () => {
    await using app = await startControl()
    const { id } = await make(app)
    for (const url of [...badUrls, 5]) {
      const reply = await app.as('owner').patch(`/regions/${id}`, { proxyUrl: null, otelEndpoint: url })
      assert.equal(reply.status, 400, String(url))
    }
    assert.equal((await app.as('owner').get(`/regions/${id}`)).body.proxyUrl, all.proxyUrl)
  })
})

const writes: [
  string,
  (app: TestControl, id: string, who?: 'owner' | 'member') => Promise<{ status: number; body: { message: string } }>,
][] = [
  ['PATCH /regions/{id}', (app, id, who = 'owner') => app.as(who).patch(`/regions/${id}`, {})],
  ['DELETE /regions/{id}', (app, id, who = 'owner') => app.as(who).delete(`/regions/${id}`)],
  ...['proxy-api-key', 'ssh-gateway-api-key', 'snapshot-manager-credentials'].map((what): (typeof writes)[number] => [
    `POST /regions/{id}/regenerate-${what}`,
    (app, id, who = 'owner') => app.as(who).post(`/regions/${id}/regenerate-${what}`),
  ]),
]

for (const [title, ask] of writes) {
  suite(title, () => {
    test('changing a region answers 404 unless the organization owns the region, 403 without the permission', async () => {
      await using app = await startControl()
      await app.database.sql`
        insert into regions (id, name, organization_id, region_type, proxy_url, ssh_gateway_url, snapshot_manager_url)
        values ('theirs_1', 'cellar', ${theirs}, 'custom', 'http://a', 'http://b', 'http://c')`
      const replies = await Promise.all(['theirs_1', 'local', 'no-such'].map((id) => ask(app, id)))
      for (const { status, body } of replies) {
        assert.deepEqual([status, body.message], [404, 'There is no such region (not found).'])
      }
      assert.equal((await ask(app, 'local', 'member')).status, 403)
    })
  })
}

suite('POST /regions/{id}/regenerate-proxy-api-key, POST /regions/{id}/regenerate-ssh-gateway-api-key', () => {
  test('POST /regions/{id}/regenerate-proxy-api-key, POST /regions/{id}/regenerate-ssh-gateway-api-key return a new key and make the old key invalid', async () => {
    await using app = await startControl()
    const made = await make(app)
    for (const [service, column, old] of [
      ['proxy', 'proxy_key_hash', made.proxyApiKey],
      ['ssh-gateway', 'ssh_gateway_key_hash', made.sshGatewayApiKey],
    ]) {
      const reply = await app.as('owner').post(`/regions/${made.id}/regenerate-${service}-api-key`)
      assert.deepEqual([reply.status, Object.keys(reply.body)], [200, ['apiKey']])
      assert.notEqual(reply.body.apiKey, old)
      assert.equal((await stored(app, made.id))[column], hashKey(reply.body.apiKey))
    }
  })

  test('regenerating a key answers 400 if the region’s service has no URL', async () => {
    await using app = await startControl()
    const { id } = await make(app, { name: 'bare' })
    for (const what of ['proxy-api-key', 'ssh-gateway-api-key', 'snapshot-manager-credentials']) {
      assert.equal((await app.as('owner').post(`/regions/${id}/regenerate-${what}`)).status, 400, what)
    }
  })

  test('the key of a region’s proxy is valid only for sandboxes of that region, until the key is replaced', async () => {
    await using app = await startControl({ sandboxes: { createWaitSeconds: 20 } })
    await using _runner = await connectRunner(app)
    const made = await make(app)
    const [here, elsewhere] = await Promise.all(
      ['here', 'elsewhere'].map(async (name) => (await app.as('owner').post('/sandbox', { name })).body.id),
    )
    await app.database.sql`update sandboxes set region_id = ${made.id} where id = ${here}`
    const ask = async (key: string, sandboxIdOrName: string) => {
      const credentials = [{ kind: 'bearer', token: keys.owner }]
      return (await app.with(key).post('/proxy/access', { sandboxIdOrName, credentials, countsAsActivity: false }))
        .status
    }
    assert.deepEqual([await ask(made.proxyApiKey, here), await ask(made.proxyApiKey, elsewhere)], [200, 404])
    assert.deepEqual([await ask(keys.proxy, here), await ask(keys.proxy, elsewhere)], [200, 200])
    assert.equal(await ask(made.sshGatewayApiKey, here), 401)
    // Endpoints for users refuse the key of a region's proxy.
    assert.equal((await app.with(made.proxyApiKey).get('/users/me')).status, 401)
    const { apiKey } = (await app.as('owner').post(`/regions/${made.id}/regenerate-proxy-api-key`)).body
    assert.deepEqual([await ask(made.proxyApiKey, here), await ask(apiKey, here)], [401, 200])
    await app.as('owner').patch(`/regions/${made.id}`, { proxyUrl: null })
    assert.equal(await ask(apiKey, here), 401)
  })

  test('the keys of a region’s services become invalid when its organization is deleted', async () => {
    await using app = await startControl()
    const { proxyApiKey } = await make(app)
    const question = { sandboxIdOrName: 'x', credentials: [], countsAsActivity: false }
    assert.equal(
      (await app.with(proxyApiKey).post('/proxy/access', question)).body.message,
      'This call needs a valid credential, such as an API key (Invalid credentials, unauthorized).',
    )
    assert.equal((await app.as('owner').delete(`/organizations/${ours}`)).status, 204)
    assert.equal((await app.with(proxyApiKey).post('/proxy/access', question)).status, 401)
    const left = await app.database.sql`select 1 from regions where proxy_key_hash is not null`
    assert.equal(left.length, 0)
  })
})

suite('POST /regions/{id}/regenerate-snapshot-manager-credentials', () => {
  test('POST /regions/{id}/regenerate-snapshot-manager-credentials returns and stores new credentials', async () => {
    await using app = await startControl()
    const made = await make(app)
    const { status, body } = await app.as('owner').post(`/regions/${made.id}/regenerate-snapshot-manager-credentials`)
    assert.deepEqual([status, Object.keys(body).sort()], [200, ['password', 'username']])
    assert.notEqual(body.password, made.snapshotManagerPassword)
    const row = await stored(app, made.id)
    assert.equal(row['snapshot_manager_username'], body.username)
    assert.equal(
      app.parts.encryption.decrypt(`snapshot-manager:${made.id}`, row['snapshot_manager_password']),
      body.password,
    )
  })
})

suite('DELETE /regions/{id}', () => {
  test('DELETE /regions/{id} deletes a region; if it was the default region, the organization has no default region afterwards', async () => {
    await using app = await startControl()
    const { id } = await make(app)
    await app.database.sql`update organizations set default_region_id = ${id} where id = ${ours}`
    const replies = await Promise.all(Array.from({ length: 5 }, () => app.as('owner').delete(`/regions/${id}`)))
    assert.deepEqual(replies.map(({ status }) => status).sort(), [204, 404, 404, 404, 404])
    assert.equal((await app.as('owner').get(`/organizations/${ours}`)).body.defaultRegionId, undefined)
  })

  test('DELETE /regions/{id} answers 400 while the region has runners or sandboxes that are not destroyed', async () => {
    await using app = await startControl({ sandboxes: { createWaitSeconds: 20 } })
    await using runner = await connectRunner(app)
    const { sql } = app.database
    const { id } = await make(app)
    const sandbox = (await app.as('owner').post('/sandbox', {})).body.id
    await sql`update sandboxes set region_id = ${id} where id = ${sandbox}`
    const remove = async () => (await app.as('owner').delete(`/regions/${id}`)).status
    assert.equal(await remove(), 400)
    await app.as('owner').delete(`/sandbox/${sandbox}`)
    await runner.untilAsked(({ sandboxId, target }) => sandboxId === sandbox && target === 'destroyed')
    await sql`insert into runners (id, region_id, key_hash, created_at, updated_at)
              values ('own', ${id}, 'x', now(), now())`
    assert.equal(await remove(), 400)
    await sql`delete from runners where id = 'own'`
    for (const end = Date.now() + 20_000; (await remove()) !== 204; ) assert.ok(Date.now() < end, 'it is still there')
    assert.deepEqual([...(await sql`select 1 from sandboxes where id = ${sandbox}`)], [])
  })
})

suite('the regions of another organization', () => {
  test('an organization can neither see nor use a region of another organization', async () => {
    await using app = await startControl()
    await using _runner = await connectRunner(app)
    const { id } = await make(app)
    const stranger = app.as('stranger')
    await app.database.sql`update organizations set default_region_id = null where id = ${theirs}`
    const ask = async (regionId: string) =>
      (
        await Promise.all([
          stranger.get(`/regions/${regionId}`),
          stranger.post('/sandbox', { target: regionId }),
          stranger.post('/snapshots', { name: 'x', imageName: 'debian:13', regionId }),
          stranger.post('/warm-pools', { snapshot: 'default', target: regionId, pool: 1 }),
          stranger.patch(`/organizations/${theirs}/default-region`, { defaultRegionId: regionId }),
          stranger.post('/organizations', { name: 'x', defaultRegionId: regionId }),
        ])
      ).map(({ status, body }) => [status, body.message.replaceAll(regionId, '…')])
    const foreign = await ask(id)
    assert.deepEqual(
      foreign.map(([status]) => status),
      Array(6).fill(404),
    )
    assert.deepEqual(foreign, await ask('no-such'))
    assert.ok(!(await stranger.get('/regions')).text.includes(id))
    assert.ok(!(await app.as('nobody').get('/shared-regions')).text.includes(id))
  })
})
