// Makes databases for tests on a real PostgreSQL. This process starts PostgreSQL unless ALCOVE_TEST_DATABASE_URL is set. Each
// database is a copy of a template database. The template is made anew only when migrations, or the code that fills the template,
// have changed.
import { createHash, randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after } from 'node:test'
import { bootstrap } from '#src/control/bootstrap.ts'
import { type Database, openDatabase } from '#src/control/storage/database.ts'
import { migrate, readMigrations } from '#src/control/storage/migrate.ts'
import { systemClock } from '#src/kit/clock.ts'
import { silentLog } from '#src/kit/log.ts'
import { withDatabase } from '#src/postgres/url.ts'
import { keys, settle } from './people.ts'
import { startTestPostgres, type TestPostgres } from './test-postgres.ts'
import { testSettings } from './test-settings.ts'

const templateLock = 7_305_530

let own: Promise<TestPostgres> | undefined

const serverUrl = async (): Promise<string> => {
  const given = process.env['ALCOVE_TEST_DATABASE_URL']
  if (given) return given
  own ??= startTestPostgres()
  return (await own).url
}

let administration: Promise<Database> | undefined

/** Runs `work`, which makes or drops a database of a test. The connection that `work` gets is to a different database. */
const administer = async <T>(work: (database: Database) => Promise<T>): Promise<T> => {
  administration ??= serverUrl().then((url) => openDatabase(url, { max: 1 }))
  return await work(await administration)
}

after(async () => {
  await (await administration)?.close()
  await (await own)?.stop()
})

const templateName = async () => {
  const made = createHash('sha256')
  for (const { text } of await readMigrations()) made.update(text)
  for (const path of [import.meta.filename, join(import.meta.dirname, 'people.ts')]) made.update(await readFile(path))
  for (const path of ['bootstrap.ts', 'api-keys/first-key.ts', 'organizations/personal.ts', 'snapshots/write.ts'])
    made.update(await readFile(join(import.meta.dirname, '../../src/control', path)))
  return `template_${made.digest('hex').slice(0, 16)}`
}

const makeTemplate = async (name: string): Promise<void> => {
  const database = openDatabase(withDatabase(await serverUrl(), name), { max: 2 })
  try {
    await migrate(database)
    await bootstrap({ database, clock: systemClock, settings: testSettings, log: silentLog() }, keys.admin)
    await settle(database.sql)
  } finally {
    await database.close()
  }
}

let template: Promise<string> | undefined

const ensureTemplate = async (): Promise<string> => {
  const name = await templateName()
  await administer(async ({ sql }) => {
    await sql`select set_config('statement_timeout', '0', false), set_config('lock_timeout', '0', false)`
    // This lock lets only one process at a time make the template. It belongs to the PostgreSQL session, because `create database`
    // cannot run in a transaction.
    await sql`select pg_advisory_lock(${templateLock})`
    const [found] = await sql`select 1 from pg_database where datname = ${name} and datistemplate`
    if (!found) {
      await sql.unsafe(`drop database if exists ${name} with (force)`)
      await sql.unsafe(`create database ${name}`)
      await makeTemplate(name)
      // The database becomes a template only when it is complete, so that no test copies an incomplete database.
      await sql.unsafe(`alter database ${name} is_template true`)
    }
    await sql`select pg_advisory_unlock(${templateLock})`
  })
  return name
}

export type TestDatabase = AsyncDisposable & { url: string; database: Database }

/**
 * Opens a new database. `settled`: the database contains the people of people.ts. `empty`: it contains only tables without rows.
 */
export const openTestDatabase = async (from: 'settled' | 'empty' = 'settled'): Promise<TestDatabase> => {
  const name = `test_${randomBytes(8).toString('hex')}`
  if (from === 'settled') template ??= ensureTemplate()
  const source = from === 'empty' ? 'template0' : await template
  await administer(async ({ sql }) => {
    // For a small database, the strategy `file_copy` is faster than the default, which copies through the write-ahead log.
    await sql.unsafe(`create database ${name} template ${source} strategy file_copy`)
    // Commits do not wait for the disk, because tests do not need their data after a crash.
    await sql.unsafe(`alter database ${name} set synchronous_commit = off`)
  })
  const url = withDatabase(await serverUrl(), name)
  const database = openDatabase(url, { max: 6 })
  return {
    url,
    database,
    [Symbol.asyncDispose]: async () => {
      await database.close()
      await administer(async ({ sql }) => {
        await sql.unsafe(`drop database if exists ${name} with (force)`)
      })
    },
  }
}
