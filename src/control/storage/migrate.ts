// Migrates a database forward to the schema of this version. Going back is not possible: an operator restores a backup
// instead.
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Database } from './database.ts'

type Migration = { number: number; name: string; text: string }

const ownMigrations = join(import.meta.dirname, 'migrations')

/** Key of the advisory lock for migrations: any number that no other code uses as a key. */
const lock = 7_305_520

/** Reads `0001_name.sql`, `0002_name.sql`, …. Throws on a gap or a duplicate number. */
export const readMigrations = async (directory = ownMigrations): Promise<Migration[]> => {
  const names = (await readdir(directory)).filter((name) => name.endsWith('.sql')).sort()
  return await Promise.all(
    names.map(async (name, index) => {
      const [, digits] = /^(\d{4})_[a-z0-9_]+\.sql$/.exec(name) ?? []
      if (Number(digits) !== index + 1)
        throw new Error(`Migration ${index + 1} is missing: found ${name} in its place.`)
      return { number: index + 1, name, text: await readFile(join(directory, name), 'utf8') }
    }),
  )
}

/**
 * Applies the missing migrations, all or none. Several processes may call this function concurrently. Returns the names
 * of the applied migrations.
 */
export const migrate = async (database: Database, directory = ownMigrations): Promise<string[]> => {
  const migrations = await readMigrations(directory)
  return await database.transaction(async (transaction) => {
    // No time limit: waiting for another process's migration, and migrating much data, may both take long.
    await transaction`set local statement_timeout = 0`
    await transaction`set local lock_timeout = 0`
    await transaction`select pg_advisory_xact_lock(${lock})`
    await transaction`
      create table if not exists migrations (
        number integer primary key,
        name text not null,
        applied_at timestamptz(3) not null default now()
      )`
    const applied = await transaction<{ number: number; name: string }[]>`
      select number, name from migrations order by number`
    for (const { number, name } of applied) {
      const ours = migrations[number - 1]?.name
      if (ours === undefined) throw new Error(`This database is newer than this Alcove: it has ${name}.`)
      if (ours !== name) throw new Error(`This database has ${name} where this Alcove has ${ours}.`)
    }
    const missing = migrations.slice(applied.length)
    for (const { number, name, text } of missing) {
      await transaction.unsafe(text)
      await transaction`insert into migrations (number, name) values (${number}, ${name})`
    }
    return missing.map(({ name }) => name)
  })
}
