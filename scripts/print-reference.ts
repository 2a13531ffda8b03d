// Generates docs/reference/ from the code: `node scripts/print-reference.ts`. Nobody edits these files by hand.
// With `--check`, it only lists the files that are out of date.
// Two files `unserved.json` list calls of Daytona's API that Alcove does not serve. Servers answer these calls with the reasons.
import { readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { openDatabase, type Sql } from '#src/control/storage/database.ts'
import { migrate } from '#src/control/storage/migrate.ts'
import { startTestPostgres } from '#test/control/test-postgres.ts'
import { compatibilityPage, unservedFile } from './reference/compatibility.ts'
import { dockerfilesPage } from './reference/dockerfiles.ts'
import { endpointsPage } from './reference/endpoints.ts'
import { errorsPage } from './reference/errors.ts'
import { lifecyclePage } from './reference/lifecycle.ts'
import { openApiFiles } from './reference/openapi.ts'
import { permissionsPage } from './reference/permissions.ts'
import { policyPage } from './reference/policy.ts'
import { schemaPage } from './reference/schema.ts'
import { settingsPage } from './reference/settings.ts'
import { snapshotsPage } from './reference/snapshots.ts'
import { statesPage } from './reference/states.ts'
import { toolboxPage } from './reference/toolbox.ts'
import { volumesPage } from './reference/volumes.ts'

const root = resolve(import.meta.dirname, '..')

/** Returns the path and the content of every generated file. `sql`: a database with all migrations. */
const printFiles = async (sql: Sql): Promise<Record<string, string>> => ({
  ...Object.fromEntries(
    Object.entries(await printPages(sql)).map(([name, text]) => [`docs/reference/${name}`, text] as const),
  ),
  'src/control/unserved.json': unservedFile('api-client'),
  'src/toolbox/unserved.json': unservedFile('toolbox-api-client'),
})

/** Returns the name and the content of each page of docs/reference. */
const printPages = async (sql: Sql): Promise<Record<string, string>> => ({
  'compatibility.md': compatibilityPage(),
  'dockerfiles.md': dockerfilesPage(),
  'endpoints.md': endpointsPage(),
  'toolbox.md': toolboxPage(),
  'errors.md': errorsPage(),
  'states.md': statesPage(),
  'lifecycle.md': lifecyclePage(),
  'snapshots.md': snapshotsPage(),
  'volumes.md': volumesPage(),
  'permissions.md': permissionsPage(),
  'policy.md': policyPage(),
  'settings.md': settingsPage(),
  'schema.sql': await schemaPage(sql),
  ...openApiFiles(),
})

const readIfThere = (name: string) => {
  try {
    return readFileSync(join(root, name), 'utf8')
  } catch {
    return undefined
  }
}

/** Lists the files whose content differs from what the code generates now. */
export const findStaleFiles = async (sql: Sql): Promise<string[]> =>
  Object.entries(await printFiles(sql))
    .filter(([name, text]) => readIfThere(name) !== text)
    .map(([name]) => name)

/** Calls `work` with a new database to which all migrations have been applied. */
const withMigrated = async (work: (sql: Sql) => Promise<void>) => {
  const { url, stop } = await startTestPostgres()
  const database = openDatabase(url, { max: 1 })
  try {
    await migrate(database)
    await work(database.sql)
  } finally {
    await database.close()
    await stop()
  }
}

if (import.meta.main) {
  await withMigrated(async (sql) => {
    if (process.argv.includes('--check')) {
      const stale = await findStaleFiles(sql)
      if (stale.length === 0) return
      console.error(`Not true any more: ${stale.join(', ')}. Run: node scripts/print-reference.ts`)
      process.exitCode = 1
      return
    }
    for (const [name, text] of Object.entries(await printFiles(sql))) writeFileSync(join(root, name), text)
  })
}
