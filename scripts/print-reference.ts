// Prints docs/reference/ from the tables of the code: `node scripts/print-reference.ts`. With `--check` it names the pages
// that are out of date. Nobody edits those pages by hand; scripts/reference/ has a file for each.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { endpointsPage } from './reference/endpoints.ts'
import { errorsPage } from './reference/errors.ts'
import { lifecyclePage } from './reference/lifecycle.ts'
import { permissionsPage } from './reference/permissions.ts'
import { policyPage } from './reference/policy.ts'
import { settingsPage } from './reference/settings.ts'
import { statesPage } from './reference/states.ts'
import { toolboxPage } from './reference/toolbox.ts'

const directory = resolve(import.meta.dirname, '../docs/reference')

/** File name and content of every page. */
const printPages = (): Record<string, string> => ({
  'endpoints.md': endpointsPage(),
  'toolbox.md': toolboxPage(),
  'errors.md': errorsPage(),
  'states.md': statesPage(),
  'lifecycle.md': lifecyclePage(),
  'permissions.md': permissionsPage(),
  'policy.md': policyPage(),
  'settings.md': settingsPage(),
})

const readPage = (name: string) => {
  try {
    return readFileSync(join(directory, name), 'utf8')
  } catch {
    return undefined
  }
}

/** The pages that differ from what the code says. */
export const findStalePages = (): string[] =>
  Object.entries(printPages())
    .filter(([name, text]) => readPage(name) !== text)
    .map(([name]) => name)

if (import.meta.main) {
  if (process.argv.includes('--check')) {
    const stale = findStalePages()
    if (stale.length > 0) {
      console.error(`Not true any more: ${stale.join(', ')}. Run: node scripts/print-reference.ts`)
      process.exit(1)
    }
  } else {
    mkdirSync(directory, { recursive: true })
    for (const [name, text] of Object.entries(printPages())) writeFileSync(join(directory, name), text)
  }
}
