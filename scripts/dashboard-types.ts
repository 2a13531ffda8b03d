// Generates the TypeScript types for the dashboard's calls from the OpenAPI descriptions of the API and of the toolbox.
import { execFileSync } from 'node:child_process'
import { join, resolve } from 'node:path'

const root = resolve(import.meta.dirname, '..')

/** Writes `dashboard/src/api/{control,toolbox}.d.ts`. Takes about a second. */
export const writeDashboardTypes = (): void => {
  for (const [description, types] of [
    ['openapi.json', 'control.d.ts'],
    ['toolbox-openapi.json', 'toolbox.d.ts'],
  ] as const) {
    const program = join(root, 'dashboard/node_modules/openapi-typescript/bin/cli.js')
    const files = [join(root, 'docs/reference', description), '-o', join(root, 'dashboard/src/api', types)]
    // With `--default-non-nullable false`, a field with a default value may be left out of a request.
    const args = [program, ...files, '--default-non-nullable', 'false']
    execFileSync(process.execPath, args, { stdio: ['ignore', 'ignore', 'inherit'] })
  }
}

if (import.meta.main) writeDashboardTypes()
