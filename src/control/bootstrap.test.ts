import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { systemClock } from '#src/kit/clock.ts'
import { silentLog } from '#src/kit/log.ts'
import { openTestDatabase } from '#test/control/test-database.ts'
import { testSettings } from '#test/control/test-settings.ts'
import { hashKey, newKey } from './auth/secret.ts'
import { bootstrap } from './bootstrap.ts'
import { migrate } from './storage/migrate.ts'

const partsOf = (opened: Awaited<ReturnType<typeof openTestDatabase>>) => ({
  database: opened.database,
  clock: systemClock,
  settings: testSettings,
  log: silentLog(),
})

suite('what control creates at its start', () => {
  test('several starts of control make one administrator, organization, region, runner, snapshot and key', async () => {
    await using opened = await openTestDatabase('empty')
    await migrate(opened.database)
    const key = newKey()
    const parts = partsOf(opened)
    assert.deepEqual((await Promise.all([bootstrap(parts, key), bootstrap(parts, key)])).sort(), [false, true])
    assert.equal(await bootstrap(parts, key), false)
    const [counts] = await opened.database.sql`
      select (select count(*) from users where system_role = 'admin') as admins,
             (select count(*) from organizations where personal and default_region_id = 'local') as organizations,
             (select count(*) from members where role = 'owner') as owners,
             (select count(*) from regions where region_type = 'shared') as regions,
             (select count(*) from runners where region_id = 'local') as runners,
             (select count(*) from snapshots where general and name = 'default') as snapshots,
             (select string_agg(hash, ' ') from api_keys) as hashes`
    assert.deepEqual(
      { ...counts },
      { admins: 1, organizations: 1, owners: 1, regions: 1, runners: 1, snapshots: 1, hashes: hashKey(key) },
    )
  })

  test('on a machine without a runner, the start of control makes the shared region `local`, but no runner', async () => {
    await using opened = await openTestDatabase('empty')
    await migrate(opened.database)
    const parts = partsOf(opened)
    await bootstrap({ ...parts, settings: { ...testSettings, runnerKeyHash: undefined } }, newKey())
    const [counts] = await opened.database.sql`
      select (select count(*) from regions) as regions, (select count(*) from runners) as runners`
    assert.deepEqual({ ...counts }, { regions: 1, runners: 0 })
  })

  test('a start of control without ALCOVE_FIRST_KEY makes no user; a later start with this key makes a user', async () => {
    await using opened = await openTestDatabase('empty')
    await migrate(opened.database)
    assert.equal(await bootstrap(partsOf(opened), undefined), false)
    assert.equal(await bootstrap(partsOf(opened), newKey()), true)
  })

  test('a new ALCOVE_FIRST_KEY replaces the former key; a first key that was deleted is not made again', async () => {
    await using opened = await openTestDatabase('empty')
    await migrate(opened.database)
    const parts = partsOf(opened)
    const hashes = async () =>
      (await opened.database.sql<{ hash: string }[]>`select hash from api_keys`).map(({ hash }) => hash)
    const [first, second] = [newKey(), newKey()]
    for (const key of [first, second, second]) await bootstrap(parts, key)
    assert.deepEqual(await hashes(), [hashKey(second)])
    await bootstrap(parts, first)
    assert.deepEqual(await hashes(), [hashKey(second)], 'it was replaced')
    await opened.database.sql`delete from api_keys`
    await bootstrap(parts, second)
    assert.deepEqual(await hashes(), [], 'it was deleted')
    const third = newKey()
    await bootstrap(parts, third)
    assert.deepEqual(await hashes(), [hashKey(third)])
    // ALCOVE_FIRST_KEY may have the value of an existing API key. The function `bootstrap` must not make a second key with this
    // value.
    const theirs = newKey()
    await opened.database.sql`update api_keys set name = 'another', hash = ${hashKey(theirs)}`
    await bootstrap(parts, theirs)
    assert.deepEqual(await hashes(), [hashKey(theirs)])
  })

  test('a deleted first key is not made again, even if the table `first_keys` is empty', async () => {
    await using opened = await openTestDatabase('empty')
    await migrate(opened.database)
    const parts = partsOf(opened)
    const key = newKey()
    await bootstrap(parts, key)
    await opened.database.sql`delete from api_keys`
    await opened.database.sql`delete from first_keys`
    await bootstrap(parts, key)
    assert.equal((await opened.database.sql`select 1 from api_keys`).length, 0)
  })

  test('if the setting for the runner’s key changes, the new key replaces the former key when control starts', async () => {
    await using opened = await openTestDatabase('empty')
    await migrate(opened.database)
    const parts = partsOf(opened)
    await bootstrap(parts, undefined)
    await bootstrap({ ...parts, settings: { ...testSettings, runnerKeyHash: hashKey('another') } }, undefined)
    const rows = await opened.database.sql<{ key_hash: string }[]>`select key_hash from runners`
    assert.deepEqual(
      rows.map(({ key_hash }) => key_hash),
      [hashKey('another')],
    )
  })
})
