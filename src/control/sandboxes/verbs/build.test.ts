// Sandboxes made from a definition, as `daytona.create({ image })` requests them.

import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { writeConfig } from '#src/control/images/image-store.ts'
import { applyImageReport } from '#src/control/runner-link/image-reports.ts'
import { type ImageReport, imageConfigBounds } from '#src/wire/runner-link.ts'
import { startControl, type TestControl } from '#test/control/harness.ts'
import { keys } from '#test/control/people.ts'
import { insertMany } from '#test/control/population.ts'
import { connectRunner, eventsOf, untilState } from '#test/control/simulated-runner.ts'

const buildInfo = { dockerfileContent: 'FROM alpine:3.20\n' }
const config = { entrypoint: [], env: {}, user: 'app', workdir: '/' }

const create = async (app: TestControl, body: object = {}) => {
  const made = await app.as('member').post('/sandbox', { buildInfo, ...body })
  assert.equal(made.status, 200, made.text)
  return made.body
}
const get = async (app: TestControl, id: string) => (await app.as('member').get(`/sandbox/${id}`)).body
const listed = async (app: TestControl) => (await app.with(keys.runner).get('/runners/images')).body
const tell = (app: TestControl, report: ImageReport) =>
  applyImageReport(app.app.sandboxes, { id: 'local', regionId: 'local' }, report)

suite('POST /sandbox with buildInfo', () => {
  test('POST /sandbox with a definition answers `pending_build`; after the build, the sandbox has the image’s user', async () => {
    await using app = await startControl()
    await using runner = await connectRunner(app)
    const made = await create(app, { name: 'box', env: { A: '1' } })
    assert.deepEqual(
      [made.state, made.snapshot, made.cpu, made.memory, made.disk, made.runnerId],
      ['pending_build', undefined, 1, 1, 3, undefined],
    )
    const { dockerfileContent, snapshotRef } = made.buildInfo
    assert.equal(dockerfileContent, buildInfo.dockerfileContent)
    const [wanted] = await listed(app)
    assert.deepEqual(
      [wanted.image, wanted.target, wanted.source, wanted.organizationId],
      [snapshotRef, 'present', { kind: 'definition', dockerfile: dockerfileContent }, made.organizationId],
    )
    runner.say({ type: 'image-progress', image: snapshotRef, step: 'pulling', percent: 40 })
    while ((await get(app, made.id)).progress?.percent !== 40) await new Promise(setImmediate)
    // Clients begin to read the build log when they see the state `building_snapshot`.
    assert.equal((await get(app, made.id)).state, 'building_snapshot')
    const page = (await app.as('member').get('/sandbox?states=building_snapshot')).body
    assert.deepEqual(
      page.items.map(({ id }: { id: string }) => id),
      [made.id],
    )

    runner.say({ type: 'image', report: { image: snapshotRef, state: 'present', config } })
    await untilState(app, made.id, 'started')
    const asked = await runner.untilAsked(({ sandboxId }) => sandboxId === made.id)
    assert.deepEqual([asked.image, asked.user, asked.isNew, asked.env], [snapshotRef, 'app', true, { A: '1' }])
    const states = (await eventsOf(app, made.id)).map(({ to_state }) => to_state)
    assert.deepEqual(states, ['pending_build', 'building_snapshot', 'creating', 'started'])
  })

  test('a sandbox waits until its image’s configuration is reported, even if a runner has the image', async () => {
    await using app = await startControl()
    const made = await create(app, { name: 'box' })
    const image = made.buildInfo.snapshotRef
    await using runner = await connectRunner(app, { images: ['default', image] })
    await app.sweep()
    assert.equal((await get(app, made.id)).state, 'pending_build')
    runner.say({ type: 'image', report: { image, state: 'present', config } })
    await untilState(app, made.id, 'started')
    assert.equal((await get(app, made.id)).user, 'app')
  })

  test('a sandbox can be made from an image whose configuration has the largest allowed size', async () => {
    await using app = await startControl()
    await using runner = await connectRunner(app)
    const made = await create(app, { name: 'box' })
    const { words, wordCharacters, nameCharacters, pathCharacters } = imageConfigBounds
    const word = 'x'.repeat(wordCharacters)
    const name = 'n'.repeat(nameCharacters)
    const most = {
      entrypoint: [word, ...Array(words - 1).fill('')],
      env: { [name]: word },
      user: name,
      workdir: 'd'.repeat(pathCharacters),
    }
    runner.say({ type: 'image', report: { image: made.buildInfo.snapshotRef, state: 'present', config: most } })
    await untilState(app, made.id, 'started')
    const { entrypoint } = await runner.untilAsked(({ sandboxId }) => sandboxId === made.id)
    assert.deepEqual([entrypoint?.length, entrypoint?.[0]], [words, word])
  })

  test('a waiting sandbox that is too large for every runner does not delay smaller sandboxes', async () => {
    await using app = await startControl()
    await using _runner = await connectRunner(app)
    const large = await create(app, { memory: 200 })
    const small = await create(app)
    const other = (await app.as('stranger').post('/sandbox', { buildInfo })).body
    const { sql } = app.database
    await sql`
      insert into sandboxes (id, name, organization_id, region_id, sandbox_class, snapshot_id, snapshot, image, os_user, env, labels,
        public, network_block_all, cpu, memory_gib, disk_gib, state, desired_state, version, generation, auto_stop_interval,
        auto_pause_interval, auto_archive_interval, auto_delete_interval, preview_token, signing_key, created_by, created_at,
        state_changed_at, updated_at, last_activity_at)
      select id || n, name || n, organization_id, region_id, sandbox_class, snapshot_id, snapshot, image, os_user, env, labels,
        public, network_block_all, cpu, memory_gib, disk_gib, state, desired_state, version, generation, auto_stop_interval,
        auto_pause_interval, auto_archive_interval, auto_delete_interval, preview_token || n, signing_key, created_by,
        created_at - interval '1 minute', state_changed_at, updated_at, last_activity_at
      from sandboxes, generate_series(1, 600) n where id = ${large.id}`
    await app.as('admin').patch('/runners/local/scheduling', { unschedulable: true })
    for (const { buildInfo: made } of [large, other])
      await tell(app, { image: made.snapshotRef, state: 'present', config })
    await app.as('admin').patch('/runners/local/scheduling', { unschedulable: false })
    assert.equal((await app.as('stranger').get(`/sandbox/${other.id}`)).body.state, 'pending_build')
    await app.sweep()
    await untilState(app, other.id, 'started')
    await untilState(app, small.id, 'started')
    assert.equal((await get(app, large.id)).state, 'pending_build')
  })

  test('an organization’s definition is built once; later creates with the definition use the built image', async () => {
    await using app = await startControl()
    await using runner = await connectRunner(app)
    const [one, two] = await Promise.all([create(app, { cpu: 2 }), create(app, { user: 'root' })])
    const image = one.buildInfo.snapshotRef
    assert.equal(two.buildInfo.snapshotRef, image)
    assert.equal((await listed(app)).length, 1)
    const stranger = await app.as('stranger').post('/sandbox', { buildInfo })
    assert.equal(stranger.status, 200, stranger.text)
    assert.notEqual(stranger.body.buildInfo.snapshotRef, image)

    await tell(app, { image, state: 'present', config })
    await Promise.all([one, two].map(({ id }) => untilState(app, id, 'started')))
    const theirs = await app.as('stranger').get(`/sandbox/${stranger.body.id}`)
    assert.equal(theirs.body.state, 'pending_build')
    assert.deepEqual([(await get(app, one.id)).user, (await get(app, two.id)).user], ['app', 'root'])
    const three = await create(app)
    assert.notEqual(three.state, 'pending_build')
    await untilState(app, three.id, 'started')
    assert.equal(runner.askedImages.filter((asked) => asked.image === image).length >= 1, true)
  })

  test('if a build fails, the sandbox becomes build_failed with the reason, and the next create builds again', async () => {
    await using app = await startControl()
    await using runner = await connectRunner(app)
    const failed = await create(app)
    const image = failed.buildInfo.snapshotRef
    runner.say({ type: 'image-progress', image, step: 'building', percent: 10 })
    while ((await get(app, failed.id)).state !== 'building_snapshot') await new Promise(setImmediate)
    await tell(app, { image, state: 'error', errorReason: 'Line 2: exit code 1' })
    const said = await get(app, failed.id)
    assert.deepEqual([said.state, said.errorReason], ['build_failed', 'Line 2: exit code 1'])
    assert.equal((await listed(app))[0].target, 'absent')
    assert.equal((await app.as('member').post(`/sandbox/${failed.id}/start`)).status, 400)

    const again = await create(app)
    assert.equal(again.state, 'pending_build')
    assert.equal((await listed(app))[0].target, 'present')
    runner.say({ type: 'image', report: { image, state: 'present', config: { ...config, user: '' } } })
    await untilState(app, again.id, 'started')
    assert.equal((await get(app, again.id)).user, 'root')
    await app.as('owner').delete(`/sandbox/${failed.id}`)
    assert.equal((await app.as('owner').get(`/sandbox/${failed.id}`)).status, 404)
  })

  test('a sandbox that is deleted while it waits for its image never starts, and frees its name at once', async () => {
    await using app = await startControl()
    await using runner = await connectRunner(app)
    const first = await create(app, { name: 'box' })
    assert.equal((await app.as('owner').delete('/sandbox/box')).body.state, 'destroyed')
    assert.equal((await app.as('owner').get(`/sandbox/${first.id}`)).status, 404)
    const made = await create(app, { name: 'box' })
    runner.say({ type: 'image-progress', image: made.buildInfo.snapshotRef, step: 'building', percent: 10 })
    while ((await get(app, made.id)).state !== 'building_snapshot') await new Promise(setImmediate)
    const deleted = await app.as('owner').delete('/sandbox/box')
    assert.deepEqual([deleted.status, deleted.body.state], [200, 'destroyed'])
    assert.equal((await app.as('owner').get(`/sandbox/${made.id}`)).status, 404)
    await tell(app, { image: made.buildInfo.snapshotRef, state: 'present', config })
    assert.deepEqual(runner.asked, [])
    const next = await create(app, { name: 'box' })
    await untilState(app, next.id, 'started')
  })

  test('if control is killed when an image is finished, a sweep starts the sandboxes that wait for the image', async () => {
    await using app = await startControl()
    await using _runner = await connectRunner(app)
    const [placed, doomed] = [await create(app), await create(app)]
    // These statements do what control does with a report of the finished image, but start no sandbox. The sandbox `doomed` is
    // deleted meanwhile.
    const image = placed.buildInfo.snapshotRef
    await app.database
      .sql`update sandboxes set state = 'destroying', desired_state = 'destroyed' where id = ${doomed.id}`
    await app.database.sql`update runners set images = array_append(images, ${image})`
    await writeConfig(app.database.sql, image, config)
    await app.sweep()
    await untilState(app, placed.id, 'started')
    app.clock.advance({ minutes: 61 })
    await app.sweep()
    await untilState(app, doomed.id, 'destroyed')
  })

  test('a sandbox that waits for a build or for room on a runner fails after an hour', async () => {
    await using app = await startControl({ sandboxes: { overcommit: { cpu: 1, memory: 1, disk: 1 } } })
    await using _runner = await connectRunner(app, { capabilities: { memoryGiB: 1 } })
    const made = await create(app, { memory: 4 })
    await tell(app, { image: made.buildInfo.snapshotRef, state: 'present', config })
    assert.equal((await get(app, made.id)).state, 'pending_build')
    await app.pass({ minutes: 61 })
    await app.sweep()
    assert.equal((await get(app, made.id)).state, 'build_failed')
  })

  test('while no runner is connected, the time limit of waiting sandboxes is suspended for up to a day', async () => {
    await using app = await startControl()
    await using runner = await connectRunner(app)
    const made = await create(app)
    const image = (await app.as('owner').post('/snapshots', { name: 'n', imageName: 'alpine:3.20' })).body
    const states = async () => [(await get(app, made.id)).state, (await app.as('owner').get('/snapshots/n')).body.state]
    // Simulates a runner whose machine is suspended: two hours pass, its link stays open, and the runner sends no message.
    app.clock.advance({ hours: 2 })
    await app.sweep()
    assert.deepEqual(await states(), ['pending_build', image.state])
    await runner.cut()
    app.clock.advance({ hours: 2 })
    await app.sweep()
    assert.deepEqual(await states(), ['pending_build', image.state])
    await runner.link()
    await tell(app, { image: made.buildInfo.snapshotRef, state: 'present', config })
    await untilState(app, made.id, 'started')
    await runner.cut()
    app.clock.advance({ hours: 25 })
    await app.sweep()
    assert.equal((await states())[1], 'error')
  })

  test('a built image is removed if no sandbox was made from it for a day', async () => {
    await using app = await startControl()
    await using _runner = await connectRunner(app)
    const made = await create(app)
    const image = made.buildInfo.snapshotRef
    await tell(app, { image, state: 'present', config })
    await untilState(app, made.id, 'started')
    app.clock.advance({ minutes: 60 * 25 })
    await app.sweep()
    assert.equal((await listed(app))[0].target, 'present')
    await app.as('owner').delete(`/sandbox/${made.id}`)
    await untilState(app, made.id, 'destroyed')
    await app.sweep()
    assert.equal((await listed(app))[0].target, 'absent')
    await tell(app, { image, state: 'absent' })
    assert.deepEqual(await listed(app), [])
  })

  test('POST /sandbox answers 403 while 1000 sandboxes of the organization wait for an image or are `build_failed`', async () => {
    await using app = await startControl()
    const made = await create(app)
    const { sql } = app.database
    await insertMany(sql, { organizationId: made.organizationId, count: 999 }, app.clock.now())
    await sql`
      update sandboxes set state = 'build_failed', desired_state = 'started', warm_pool_id = null where id <> ${made.id}`
    const another = () => app.as('member').post('/sandbox', { buildInfo })
    const refused = await another()
    assert.deepEqual([refused.status, /1000 sandboxes are waiting/.test(refused.text)], [403, true])
    assert.equal((await app.as('owner').delete(`/sandbox/${made.id}`)).status, 200)
    assert.equal((await another()).status, 200)
  })

  test('a sweep keeps 500 built images per organization; at 1000 images, a create with a build answers 403', async () => {
    await using app = await startControl()
    const { sql } = app.database
    const made = await create(app)
    const fill = (from: number, to: number) => sql`
      insert into images (name, source, region_id, max_gib, built_for, created_at, updated_at)
      select 'build-' || n, '{}', 'local', 1, built_for, now(), ${app.clock.now()}::timestamptz - interval '1 hour' + n * interval '1 second'
      from images, generate_series(${from}::integer, ${to}::integer) n where name = ${made.buildInfo.snapshotRef}`
    await fill(1, 600)
    await app.sweep()
    const wanted =
      await sql`select name from images where wanted and name <> ${made.buildInfo.snapshotRef} order by updated_at`
    assert.deepEqual([wanted.length, wanted[0]!['name']], [499, 'build-102'])
    await fill(601, 999)
    const another = (line: string) =>
      app.as('member').post('/sandbox', { buildInfo: { dockerfileContent: `FROM alpine:3.20\n# ${line}` } })
    const refused = await another('one')
    assert.deepEqual([refused.status, /1000 images/.test(refused.text)], [403, true])
    // A definition that was built before needs no new image, so the limit of 1000 images does not apply.
    await create(app)
    await tell(app, { image: 'build-1', state: 'absent' })
    assert.equal((await another('one')).status, 200)
    assert.equal(
      (await app.as('stranger').post('/sandbox', { buildInfo: { dockerfileContent: 'FROM a:1' } })).status,
      200,
    )
  })

  test('POST /sandbox answers 400 for an invalid definition, 403 for too large a size, 404 for an unknown region', async () => {
    await using app = await startControl()
    const status = async (body: object) => (await app.as('member').post('/sandbox', { buildInfo, ...body })).status
    assert.equal(await status({ snapshot: 'default' }), 400)
    assert.equal(await status({ buildInfo: {} }), 400)
    assert.equal(await status({ buildInfo: 'FROM x' }), 400)
    assert.equal(await status({ buildInfo: { dockerfileContent: 'FROM a\0b' } }), 400)
    assert.equal(await status({ buildInfo: { ...buildInfo, contextHashes: ['a'] } }), 400)
    assert.equal(await status({ cpu: 10_000 }), 403)
    assert.equal(await status({ target: 'none' }), 404)
  })
})
