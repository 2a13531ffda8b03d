import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, suite, test } from 'node:test'
import { insertMany } from '#test/control/population.ts'
import { openTestDatabase } from '#test/control/test-database.ts'
import { openDatabase } from './database.ts'
import { migrate, readMigrations } from './migrate.ts'

const base = await mkdtemp(join(tmpdir(), 'alcove-migrate-'))
after(() => rm(base, { recursive: true, force: true }))

const directoryOf = async (files: Record<string, string>) => {
  const directory = await mkdtemp(join(base, 'set-'))
  for (const [name, text] of Object.entries(files)) await writeFile(join(directory, name), text)
  return directory
}

suite('`migrate`', () => {
  test('`migrate` applies each migration once to an empty database; its second run changes nothing', async () => {
    await using opened = await openTestDatabase('empty')
    const names = (await readMigrations()).map(({ name }) => name)
    assert.deepEqual(await migrate(opened.database), names)
    assert.deepEqual(await migrate(opened.database), [])
    const rows = await opened.database.sql<{ name: string }[]>`select name from migrations order by number`
    assert.deepEqual(
      rows.map(({ name }) => name),
      names,
    )
  })

  test('a migration fills the column `label_signature` of sandboxes that exist already', async () => {
    await using opened = await openTestDatabase('empty')
    const { sql } = opened.database
    const former = (await readMigrations()).filter(({ number }) => number < 31).map(({ name, text }) => [name, text])
    await migrate(opened.database, await directoryOf(Object.fromEntries(former)))
    await opened.database.transaction(async (transaction) => {
      // Disables foreign keys, so that the test can insert sandboxes without a region.
      await transaction`set local session_replication_role = 'replica'`
      await insertMany(transaction, { organizationId: 'organization-ours', count: 100 }, new Date())
    })
    const reckoned = async () => {
      const [found] = await sql<[{ right: number; bits: number }]>`
        select count(*) filter (where label_signature = label_signature(labels))::int as right,
          max(bit_count(label_signature::bit(64)))::int as bits from sandboxes`
      return found
    }
    // Before migration 31, each label sets one bit of `label_signature`; afterwards, up to three. The sandboxes here have at most
    // four labels.
    assert.deepEqual(await reckoned(), { right: 100, bits: 4 })
    await migrate(opened.database)
    const { right, bits } = await reckoned()
    assert.equal(right, 100)
    assert.ok(bits > 8 && bits <= 12, `${bits} bits`)
  })

  test('a migration renames sandboxes whose names look like ids or tokens; timelines show the new names', async () => {
    await using opened = await openTestDatabase('empty')
    const { sql } = opened.database
    const former = (await readMigrations()).filter(({ number }) => number < 39).map(({ name, text }) => [name, text])
    await migrate(opened.database, await directoryOf(Object.fromEntries(former)))
    await opened.database.transaction(async (transaction) => {
      await transaction`set local session_replication_role = 'replica'`
      await insertMany(transaction, { organizationId: 'organization-ours', count: 5 }, new Date())
    })
    const ids = (await sql<{ id: string }[]>`select id from sandboxes order by created_at`).map(({ id }) => id)
    const names = [ids[1]!, 'abcdefghijklmn01', ids[0]!.toUpperCase(), ids[3]!, 'box']
    for (const [at, name] of names.entries()) await sql`update sandboxes set name = ${name} where id = ${ids[at]!}`
    await sql`insert into snapshots (organization_id, general, name, state, image, cpu, memory_gib, disk_gib)
      select null, true, name, 'active', name, 1, 1, 1 from unnest(array[${ids[0]!}, 'abcdefghijklmn01']) as name`
    await migrate(opened.database)
    const now = await sql<{ name: string; reason: string | null }[]>`
      select name, reason from sandboxes left join sandbox_events on sandbox_id = sandboxes.id order by sandboxes.created_at`
    for (const [at, { name, reason }] of now.entries()) {
      const isRenamed = at < 3
      if (isRenamed) assert.match(name.slice(names[at]!.length), /^-[0-9a-f]{12}$/)
      else assert.equal(name, names[at])
      assert.equal(reason?.includes(`Renamed to "${name}"`), isRenamed ? true : undefined)
    }
    const snapshots = await sql<{ name: string }[]>`select name from snapshots where general and image <> 'default'`
    assert.deepEqual(snapshots.map(({ name }) => name.length).sort(), [16, 36 + 13])
  })

  test('if two processes migrate a database at the same time, one applies the migrations and the other waits', async () => {
    await using opened = await openTestDatabase('empty')
    const other = openDatabase(opened.url, { max: 1 })
    try {
      const applied = await Promise.all([migrate(opened.database), migrate(other)])
      assert.deepEqual(applied.map((names) => names.length > 0).sort(), [false, true])
    } finally {
      await other.close()
    }
  })

  test('a migration that fails leaves the database as it was before the migration', async () => {
    await using opened = await openTestDatabase('empty')
    const directory = await directoryOf({
      '0001_first.sql': 'create table first ()',
      '0002_second.sql': 'create table second (); select 1 / 0',
    })
    await assert.rejects(migrate(opened.database, directory), { code: '22012' })
    const tables = await opened.database.sql`select tablename from pg_tables where schemaname = 'public'`
    assert.equal(tables.length, 0)
  })

  test('a gap or a duplicate in the numbers of migrations throws before any migration is applied', async () => {
    await assert.rejects(
      directoryOf({ '0001_a.sql': '', '0003_c.sql': '' }).then(readMigrations),
      /Migration 2 is missing: found 0003_c\.sql/,
    )
    await assert.rejects(directoryOf({ '0001_a.sql': '', '0001_b.sql': '' }).then(readMigrations), /Migration 2/)
    await assert.rejects(directoryOf({ 'first.sql': '' }).then(readMigrations), /Migration 1/)
  })

  test('`migrate` does not change a database of a newer version, or a database with other migrations', async () => {
    await using opened = await openTestDatabase('empty')
    const first = { '0001_a.sql': 'create table a ()' }
    await migrate(opened.database, await directoryOf({ ...first, '0002_b.sql': 'create table b ()' }))
    await assert.rejects(migrate(opened.database, await directoryOf(first)), /newer than this Alcove: it has 0002_b/)
    await assert.rejects(
      migrate(opened.database, await directoryOf({ ...first, '0002_c.sql': 'create table c ()' })),
      /has 0002_b\.sql where this Alcove has 0002_c\.sql/,
    )
  })
})
