import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { startControl } from '#test/control/harness.ts'
import { organizations } from '#test/control/people.ts'
import { connectRunner, eventsOf, untilState } from '#test/control/simulated-runner.ts'

const waiting = { sandboxes: { createWaitSeconds: 20 } }

suite('POST /sandbox', () => {
  test('POST /sandbox returns the started sandbox, with all default values', async () => {
    await using app = await startControl(waiting)
    await using runner = await connectRunner(app)
    const { status, body } = await app.as('member').post('/sandbox', {})
    assert.equal(status, 200)
    const { id, createdAt, updatedAt, lastActivityAt, ...rest } = body
    assert.match(id, /^[0-9a-f-]{36}$/)
    assert.deepEqual(rest, {
      organizationId: organizations.ours,
      name: id,
      snapshot: 'default',
      user: 'daytona',
      env: {},
      labels: {},
      public: false,
      networkBlockAll: false,
      target: 'local',
      cpu: 1,
      gpu: 0,
      memory: 1,
      disk: 3,
      spot: false,
      state: 'started',
      desiredState: 'started',
      backupState: 'None',
      autoStopInterval: 15,
      autoPauseInterval: 0,
      autoArchiveInterval: 10_080,
      autoDeleteInterval: -1,
      volumes: [],
      sandboxClass: 'container',
      runnerId: 'local',
      toolboxProxyUrl: 'http://proxy.test:3001/toolbox',
    })
    for (const at of [createdAt, updatedAt, lastActivityAt]) assert.equal(new Date(at).toISOString(), at)
    assert.equal(runner.asked.length, 1)
    assert.deepEqual(
      (await eventsOf(app, id)).map((each) => [each.from_state, each.to_state, each.by_kind, each.by_id]),
      [
        [null, 'creating', 'user', 'user-member'],
        ['creating', 'started', 'runner', 'local'],
      ],
    )
  })

  test('POST /sandbox sends every field to the runner as the caller gave it', async () => {
    await using app = await startControl(waiting)
    await using runner = await connectRunner(app)
    const { status, body } = await app.as('member').post('/sandbox', {
      name: '  my box ',
      user: 'root',
      env: { A: '1', _b: '' },
      labels: { 'code-toolbox-language': 'typescript', team: 'red' },
      public: true,
      networkBlockAll: true,
      networkAllowList: '10.0.0.0/8, 1.2.3.4/32',
      domainAllowList: 'API.example.com, *.bücher.example',
      cpu: 2,
      memory: 3,
      disk: 5,
      autoStopInterval: 0,
      autoArchiveInterval: 0,
      autoDeleteInterval: -7,
      ttlMinutes: 60,
      target: 'local',
      kvm: true,
    })
    assert.equal(status, 200)
    assert.deepEqual(
      [body.name, body.autoStopInterval, body.autoArchiveInterval, body.autoDeleteInterval, body.networkAllowList],
      ['my box', 0, 43_200, -1, '10.0.0.0/8,1.2.3.4/32'],
    )
    assert.equal(body.domainAllowList, 'api.example.com,*.xn--bcher-kva.example')
    assert.equal(Date.parse(body.autoDestroyAt) - Date.parse(body.createdAt), 3_600_000)
    assert.equal(body.kvm, undefined)
    assert.deepEqual(runner.asked, [
      {
        sandboxId: body.id,
        organizationId: organizations.ours,
        regionId: 'local',
        name: 'my box',
        generation: 1,
        target: 'started',
        signal: 'SIGTERM',
        image: 'default',
        snapshot: 'default',
        user: 'root',
        env: { A: '1', _b: '' },
        language: 'typescript',
        cpu: 2,
        memoryGiB: 3,
        diskGiB: 5,
        network: {
          blockAll: true,
          allowList: ['10.0.0.0/8', '1.2.3.4/32'],
          domains: ['api.example.com', '*.xn--bcher-kva.example'],
        },
        isNew: true,
      },
    ])
  })

  test('POST /sandbox answers 200 with state `creating` if the runner takes longer than the call waits', async () => {
    await using app = await startControl({ sandboxes: { createWaitSeconds: 0 } })
    await using runner = await connectRunner(app)
    runner.behave(() => ({ type: 'silent' }))
    const { status, body } = await app.as('member').post('/sandbox', { name: 'slow' })
    assert.deepEqual([status, body.state], [200, 'creating'])
  })

  test('POST /sandbox answers 200 with state `error` and the reason if the runner cannot make the sandbox', async () => {
    await using app = await startControl(waiting)
    await using runner = await connectRunner(app)
    runner.behave(() => ({ type: 'fail', reason: 'the pool is full' }))
    const { status, body } = await app.as('member').post('/sandbox', {})
    assert.deepEqual([status, body.state, body.errorReason, body.recoverable], [200, 'error', 'the pool is full', true])
    assert.equal(runner.asked.length, 1)
  })

  test('POST /sandbox answers 409 for a name in use, even if two calls arrive at the same moment', async () => {
    await using app = await startControl(waiting)
    await using _runner = await connectRunner(app)
    const replies = await Promise.all(
      Array.from({ length: 5 }, () => app.as('member').post('/sandbox', { name: 'one' })),
    )
    assert.deepEqual(replies.map(({ status }) => status).sort(), [200, 409, 409, 409, 409])
    const [counted] = await app.database.sql`select count(*)::int as n from sandboxes`
    assert.equal(counted?.['n'], 1)
    const theirs = await app.as('stranger').post('/sandbox', { name: 'one' })
    assert.equal(theirs.status, 200)
  })

  test('of six simultaneous creates on a runner with room for two sandboxes, two answer 200, the others 503', async () => {
    await using app = await startControl({
      sandboxes: { createWaitSeconds: 20, overcommit: { cpu: 1, memory: 1, disk: 1 } },
    })
    await using _runner = await connectRunner(app, { capabilities: { cpu: 2 } })
    const replies = await Promise.all(Array.from({ length: 6 }, () => app.as('member').post('/sandbox', {})))
    assert.deepEqual(replies.map(({ status }) => status).sort(), [200, 200, 503, 503, 503, 503])
  })

  test('a create with an Idempotency-Key makes one sandbox, however often and quickly the create is repeated', async () => {
    await using app = await startControl(waiting)
    await using runner = await connectRunner(app)
    const again = { headers: { 'idempotency-key': 'attempt-1' } }
    const replies = await Promise.all(
      Array.from({ length: 4 }, () => app.as('member').post('/sandbox', { name: 'a' }, again)),
    )
    assert.deepEqual(
      replies.map(({ status, body }) => [status, body.id]),
      replies.map(() => [200, replies[0]?.body.id]),
    )
    const other = await app.as('member').post('/sandbox', { name: 'b' }, again)
    assert.equal(other.status, 422)
    const theirs = await app.as('stranger').post('/sandbox', { name: 'a' }, again)
    assert.equal(theirs.status, 200)
    assert.notEqual(theirs.body.id, replies[0]?.body.id)
    assert.equal(runner.asked.length, 2)
    const unreadable = await app.as('member').post('/sandbox', {}, { headers: { 'idempotency-key': 'a b' } })
    assert.equal(unreadable.status, 400)
  })

  test('POST /sandbox answers 503 with Retry-After until a runner has reported the default snapshot', async () => {
    await using app = await startControl({ sandboxes: { createWaitSeconds: 0 } })
    const before = await app.as('member').post('/sandbox', {})
    assert.deepEqual(
      [before.status, before.body.message, before.headers['retry-after']],
      [
        503,
        'The default image is being made, which takes a few minutes at the first start. Try again in a moment.',
        '5',
      ],
    )
    const ready = await app.as('nobody').get('/health/ready')
    assert.deepEqual([ready.status, ready.headers['retry-after']], [503, '5'])
    await using runner = await connectRunner(app, { images: [] })
    assert.equal((await app.as('member').post('/sandbox', {})).status, 503)
    await runner.cut()
    await runner.link(['default'])
    assert.equal((await app.as('member').post('/sandbox', {})).status, 200)
  })

  test('a create that waits for its snapshot answers 200 when a runner reports that snapshot', async () => {
    await using app = await startControl(waiting)
    const asked = app.as('member').post('/sandbox', {})
    await using runner = await connectRunner(app, { images: [] })
    await runner.cut()
    await runner.link(['default'])
    const { status, body } = await asked
    assert.deepEqual([status, body.state], [200, 'started'])
  })

  test('POST /sandbox answers 503 if the only runner has been silent for too long', async () => {
    await using app = await startControl(waiting)
    await using runner = await connectRunner(app)
    app.clock.advance({ minutes: 1 })
    await app.sweep()
    const reply = await app.as('member').post('/sandbox', {})
    assert.equal(reply.status, 503)
    assert.equal(runner.asked.length, 0)
  })

  test('POST /sandbox answers 403 to a suspended organization, and makes no sandbox', async () => {
    await using app = await startControl(waiting)
    await using runner = await connectRunner(app)
    await app.database.sql`update organizations set suspended = true where id = ${organizations.ours}`
    assert.equal((await app.as('member').post('/sandbox', {})).status, 403)
    assert.equal(runner.asked.length, 0)
  })

  test('POST /sandbox answers 403 for a size above the organization’s limits; the message names each exceeded limit', async () => {
    await using app = await startControl(waiting)
    await using _runner = await connectRunner(app)
    await app.database.sql`update organizations set max_cpu_per_sandbox = 4, max_disk_per_sandbox = 10`
    const reply = await app.as('member').post('/sandbox', { cpu: 5, memory: 1, disk: 11 })
    assert.deepEqual(
      [reply.status, reply.body.message],
      [
        403,
        'cpu 5 is more than the 4 that a sandbox may have, disk 11 GiB is more than the 10 GiB that a sandbox may have (quota exceeded, limit exceeded)',
      ],
    )
  })

  test('POST /sandbox answers 403 without write:sandboxes, and 401 without a credential', async () => {
    await using app = await startControl()
    assert.equal((await app.as('viewer').post('/sandbox', {})).status, 403)
    assert.equal((await app.as('nobody').post('/sandbox', {})).status, 401)
  })

  const refused: [status: number, body: unknown, says: RegExp][] = [
    [422, { gpu: 1 }, /gpu/],
    [422, { gpuType: ['H100'] }, /gpuType/],
    [400, { spot: true }, /spot/],
    [404, { volumes: [{ volumeId: 'nowhere', mountPath: '/v' }] }, /nowhere/],
    [400, { volumes: 'v' }, /volumes/],
    [400, { volumes: [{ volumeId: 'v' }] }, /mountPath/],
    [400, { volumes: [{ volumeId: 1, mountPath: '/v' }] }, /volumeId/],
    [400, { volumes: [{ volumeId: 'v', mountPath: '/proc' }] }, /mountPath/],
    [400, { volumes: [{ volumeId: 'v', mountPath: '/v', subpath: '../x' }] }, /subpath/],
    [400, { volumes: Array.from({ length: 17 }, (_, n) => ({ volumeId: 'v', mountPath: `/${n}` })) }, /volumes/],
    [400, { buildInfo: { dockerfileContent: 'FROM x', contextHashes: ['a'] } }, /contextHashes/],
    [422, { linkedSandbox: 'x' }, /linkedSandbox/],
    [400, { secrets: [{ A: 'b' }] }, /no secret/],
    [422, { outboundProxyUrl: 'http://x' }, /outboundProxyUrl/],
    [400, { otelEndpointOverride: 'ftp://x' }, /otelEndpointOverride/],
    [400, { otelEndpointOverride: 'http://169.254.169.254' }, /otelEndpointOverride/],
    [400, { otelEndpointOverride: 'http://me:secret@x' }, /otelEndpointOverride/],
    [400, { autoPauseInterval: 5, autoStopInterval: 5 }, /autoPauseInterval cannot both/],
    [400, { autoPauseInterval: 5, autoDeleteInterval: 0 }, /autoPauseInterval/],
    [400, { autoStopInterval: -1 }, /autoStopInterval/],
    [400, { autoStopInterval: 1.5 }, /autoStopInterval/],
    [400, { ttlMinutes: -1 }, /ttlMinutes/],
    [400, { cpu: 0 }, /cpu/],
    [400, { memory: -1 }, /memory/],
    [400, { disk: 0.5 }, /disk/],
    [400, { cpu: 1e12 }, /cpu/],
    [400, { snapshot: 'default', cpu: 1 }, /cpu/],
    [400, { snapshot: 'nowhere' }, /nowhere/],
    [404, { target: 'nowhere' }, /nowhere/],
    [400, { env: { '1A': 'x' } }, /1A/],
    [400, { env: { 'A B': 'x' } }, /A B/],
    [400, { env: { A: 1 } }, /env/],
    [400, { env: { A: 'x'.repeat(40_000), B: 'x'.repeat(40_000) } }, /env .*65536 bytes/],
    [400, { labels: { a: 'x'.repeat(40_000), b: 'x'.repeat(40_000) } }, /labels .*65536 bytes/],
    [400, { labels: { a: {} } }, /labels/],
    [400, { labels: [] }, /labels/],
    [400, { labels: { a: '\ud800' } }, /surrogate/],
    [400, { env: { A: 'x\u0000' } }, /NUL/],
    [400, { name: '' }, /name/],
    [400, { name: '   ' }, /name/],
    [400, { name: 'a\u0000b' }, /NUL/],
    [400, { name: 'a\nb' }, /control/],
    [400, { name: 'a/b' }, /paths/],
    [400, { name: '..' }, /name/],
    [400, { name: '<b>x</b>' }, /HTML/],
    [400, { name: 'see https://example.com' }, /name/],
    [400, { name: 'DESTROYED_x' }, /reserved/],
    [400, { name: '0E2B5D9A-1C3F-4E5A-9B7C-2D4F6A8B0C1E' }, /id/],
    [400, { name: '0e2b5d9a1c3f4e5a9b7c2d4f6a8b0c1e' }, /id/],
    [400, { name: 'ABCDEFGHIJKLMN01' }, /token/],
    [400, { name: 'x'.repeat(256) }, /name/],
    [400, { networkAllowList: '10.0.0.0' }, /networkAllowList/],
    [400, { networkAllowList: '::/0' }, /networkAllowList/],
    [400, { domainAllowList: '*' }, /domainAllowList/],
    [400, { domainAllowList: ['example.com'] }, /domainAllowList/],
    [400, { user: 'a b' }, /user/],
    [400, { user: '../x' }, /user/],
    [400, { public: 'yes' }, /public/],
    [400, [], /body/],
  ]

  test('POST /sandbox answers 4xx for a wrong or unsupported field, names the field, and makes no sandbox', async () => {
    await using app = await startControl(waiting)
    await using runner = await connectRunner(app)
    for (const [status, body, says] of refused) {
      const reply = await app.as('member').post('/sandbox', body)
      assert.equal(reply.status, status, `${JSON.stringify(body)}: ${reply.text}`)
      assert.match(reply.body.message, says, JSON.stringify(body))
    }
    assert.equal(runner.asked.length, 0)
    const [counted] = await app.database.sql`select count(*)::int as n from sandboxes`
    assert.equal(counted?.['n'], 0)
  })

  test('POST /sandbox accepts an unsupported field if its value is empty, false or 0', async () => {
    await using app = await startControl(waiting)
    await using _runner = await connectRunner(app)
    const nothing = {
      gpu: 0,
      gpuType: [],
      spot: false,
      volumes: [],
      secrets: [],
      autoPauseInterval: 0,
      domainAllowList: '',
    }
    assert.equal((await app.as('member').post('/sandbox', nothing)).status, 200)
  })

  test('a runner that reconnects gets the assignments that it missed while it was disconnected', async () => {
    await using app = await startControl({ sandboxes: { createWaitSeconds: 0 } })
    await using runner = await connectRunner(app)
    await runner.cut()
    const { body } = await app.as('member').post('/sandbox', {})
    assert.equal(body.state, 'creating')
    await runner.link()
    await untilState(app, body.id, 'started')
  })

  test('a sweep repeats an assignment that a runner received but did not carry out', async () => {
    await using app = await startControl({ sandboxes: { createWaitSeconds: 0 } })
    await using runner = await connectRunner(app)
    runner.behave(() => ({ type: 'silent' }))
    const { body } = await app.as('member').post('/sandbox', {})
    await runner.untilAsked(({ sandboxId }) => sandboxId === body.id)
    runner.behave(() => ({ type: 'do' }))
    app.clock.advance({ seconds: 10 })
    await app.sweep()
    await untilState(app, body.id, 'started')
  })
})
