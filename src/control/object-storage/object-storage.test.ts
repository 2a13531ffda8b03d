import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { applyImageReport } from '#src/control/runner-link/image-reports.ts'
import { contextBucket } from '#src/wire/contexts.ts'
import { startControl, type TestControl } from '#test/control/harness.ts'
import { organizations, userId } from '#test/control/people.ts'
import { connectRunner } from '#test/control/simulated-runner.ts'

const [one, two] = ['a'.repeat(32), 'b'.repeat(32)]

const withRunner = async (check: (app: TestControl) => Promise<void>) => {
  await using app = await startControl()
  await using _runner = await connectRunner(app)
  await check(app)
}

type Granted = { accessKey: string; sessionToken: string }
const ask = (app: TestControl, { accessKey, sessionToken }: Granted) =>
  app.as('proxy').post('/proxy/object-storage', { accessKey, sessionToken })
const grant = async (app: TestControl) => {
  const { status, body, text } = await app.as('member').get('/object-storage/push-access')
  assert.equal(status, 200, text)
  return body
}

suite('GET /object-storage/push-access', () => {
  test('GET /object-storage/push-access returns credentials with which the SDK can upload files to the gate', () =>
    withRunner(async (app) => {
      const { secret, accessKey, sessionToken, ...rest } = await grant(app)
      assert.deepEqual(rest, {
        storageUrl: app.parts.settings.proxyUrl,
        organizationId: organizations.ours,
        bucket: contextBucket,
        region: 'us-east-1',
      })
      const { status, body } = await ask(app, { accessKey, sessionToken })
      const runnerAddress = 'unix:/simulated/runner.sock'
      assert.deepEqual([status, body], [200, { organizationId: organizations.ours, secret, runnerAddress }])
      const again = await grant(app)
      assert.notEqual(again.secret, secret)
    }))

  test('GET /object-storage/push-access answers 401 without a key, 403 if the caller may not build images', async () => {
    await using app = await startControl()
    const get = async (who: Parameters<typeof app.as>[0]) =>
      (await app.as(who).get('/object-storage/push-access')).status
    assert.deepEqual([await get('nobody'), await get('viewer'), await get('owner')], [401, 403, 200])
    await app.database.sql`update organizations set suspended = true where id = ${organizations.ours}`
    app.app.sandboxes.callers.forget()
    assert.equal(await get('owner'), 403)
  })
})

suite('POST /proxy/object-storage', () => {
  test('POST /proxy/object-storage answers 410 for credentials older than an hour, and 401 for wrong or forged credentials', () =>
    withRunner(async (app) => {
      const [granted, other] = [await grant(app), await grant(app)]
      assert.equal((await ask(app, { ...granted, sessionToken: other.sessionToken })).status, 401)
      assert.equal((await ask(app, { ...granted, accessKey: 'ALCVOTHER' })).status, 401)
      const changed = `${granted.sessionToken.slice(0, -3)}AAA`
      assert.equal((await ask(app, { ...granted, sessionToken: changed })).status, 401)
      assert.equal((await ask(app, { ...granted, sessionToken: '' })).status, 401)
      app.clock.advance({ minutes: 61 })
      assert.equal((await ask(app, granted)).status, 410)
    }))

  test('POST /proxy/object-storage answers 401 if the API key was deleted or its user has left the organization', () =>
    withRunner(async (app) => {
      const made = await app.as('owner').post('/api-keys', { name: 'brief', permissions: ['write:snapshots'] })
      const brief = app.with(made.body.value)
      const { body: granted } = await brief.get('/object-storage/push-access')
      assert.equal((await ask(app, granted)).status, 200)
      assert.ok((await app.as('owner').delete('/api-keys/brief')).status < 300)
      assert.equal((await ask(app, granted)).status, 401)
      const { body: person } = await app.asUser('member').get('/object-storage/push-access')
      assert.equal((await ask(app, person)).status, 200)
      const path = `/organizations/${organizations.ours}/users/${userId('member')}`
      const removed = await app.asUser('owner').delete(path)
      assert.ok(removed.status < 300, removed.text)
      assert.equal((await ask(app, person)).status, 401)
    }))

  test('POST /proxy/object-storage answers 503 for valid credentials while no runner is connected', async () => {
    await using app = await startControl()
    assert.equal((await ask(app, await grant(app))).status, 503)
  })
})

suite('GET /runners/contexts', () => {
  const dockerfileContent = 'FROM x\nCOPY a /a\n'

  test('GET /runners/contexts lists the hashes of a definition’s files as long as the definition’s image exists', () =>
    withRunner(async (app) => {
      const inUse = async () => (await app.as('runner').get('/runners/contexts')).body.inUse
      assert.deepEqual(await inUse(), [])
      const buildInfo = { dockerfileContent, contextHashes: [one, two] }
      const { body } = await app.as('owner').post('/snapshots', { name: 'made', buildInfo })
      assert.deepEqual(body.buildInfo.contextHashes, [one, two])
      const shown = (await app.as('owner').get('/snapshots/made')).body
      assert.deepEqual(shown.buildInfo.contextHashes, [one, two])
      const images = (await app.as('runner').get('/runners/images')).body
      const contexts = { organizationId: organizations.ours, hashes: [one, two] }
      assert.deepEqual(
        images.map(({ source }: { source: object }) => source),
        [{ kind: 'definition', dockerfile: dockerfileContent, contexts }],
      )
      assert.deepEqual(await inUse(), [contexts])
      const config = { entrypoint: [], env: {}, user: '', workdir: '/' }
      const report = { image: images[0].image, state: 'present', config } as const
      await applyImageReport(app.app.sandboxes, { id: 'local', regionId: 'local' }, report)
      assert.equal((await app.as('owner').delete(`/snapshots/${body.id}`)).status, 200)
      assert.deepEqual(await inUse(), [])
    }))

  test('two definitions with the same Dockerfile and different files have different images', () =>
    withRunner(async (app) => {
      const imageOf = async (contextHashes: string[]) => {
        const { status, body, text } = await app
          .as('member')
          .post('/sandbox', { buildInfo: { dockerfileContent, contextHashes } })
        assert.equal(status, 200, text)
        assert.deepEqual(body.buildInfo.contextHashes ?? [], contextHashes)
        return body.buildInfo.snapshotRef
      }
      const images = [await imageOf([]), await imageOf([one]), await imageOf([two]), await imageOf([two, one])]
      assert.equal(new Set(images).size, 4)
      assert.equal(await imageOf([one]), images[1])
    }))

  test('a create of a sandbox or a snapshot from a definition with an invalid file hash answers 400', async () => {
    await using app = await startControl()
    for (const hash of ['x', '../../theirs', `${one}/..`]) {
      const buildInfo = { dockerfileContent, contextHashes: [hash] }
      assert.equal((await app.as('owner').post('/sandbox', { buildInfo })).status, 400)
      assert.equal((await app.as('owner').post('/snapshots', { name: 'n', buildInfo })).status, 400)
    }
  })
})
