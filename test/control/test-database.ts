// Databases for tests, on a real PostgreSQL: the one that ALCOVE_TEST_DATABASE_URL names, or one of this process.
// Each is copied from a template that is migrated and settled once for each state of the code that makes it.
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

/** Asks the server itself, outside of every test's database. */
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
    // A session lock: `create database` does not run inside a transaction.
    await sql`select pg_advisory_lock(${templateLock})`
    const [found] = await sql`select 1 from pg_database where datname = ${name} and datistemplate`
    if (!found) {
      await sql.unsafe(`drop database if exists ${name} with (force)`)
      await sql.unsafe(`create database ${name}`)
      await makeTemplate(name)
      // Only a finished one is marked.
      await sql.unsafe(`alter database ${name} is_template true`)
    }
    await sql`select pg_advisory_unlock(${templateLock})`
  })
  return name
}

export type TestDatabase = AsyncDisposable & { url: string; database: Database }

/** A database of its own: `settled` has the people of people.ts in it, `empty` has nothing. */
export const openTestDatabase = async (from: 'settled' | 'empty' = 'settled'): Promise<TestDatabase> => {
  const name = `test_${randomBytes(8).toString('hex')}`
  if (from === 'settled') template ??= ensureTemplate()
  const source = from === 'empty' ? 'template0' : await template
  await administer(async ({ sql }) => {
    // Sooner than by way of the log, for one as small as this.
    await sql.unsafe(`create database ${name} template ${source} strategy file_copy`)
    // What tests write need not survive the machine.
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
