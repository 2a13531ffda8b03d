// Finds what a test file needs before it can run, for example a database or the C programs, from its direct and indirect
// imports. So nobody has to maintain a list of needs.
import { existsSync, readFileSync } from 'node:fs'
import { dirname, relative, resolve } from 'node:path'

export type Need = 'database' | 'programs'

const root = resolve(import.meta.dirname, '..')
const databaseFixture = 'test/control/test-postgres.ts'
/** Node modules that can start programs. A worker can import anything, so it is in the list too. */
const starters = ['node:child_process', 'node:cluster', 'node:worker_threads']

const forms = /^(?:import|export)\s+(?!type\b)[^'"]*?\bfrom\s*'([^']+)'|^import\s*'([^']+)'|\bimport\(\s*'([^']+)'/gm

const importsOf = new Map<string, string[]>()

/** The modules that a file imports. Our files are paths from the root. Imports of types do not count. */
const readImports = (file: string): string[] => {
  const known = importsOf.get(file)
  if (known !== undefined) return known
  const specifiers = [...readFileSync(resolve(root, file), 'utf8').matchAll(forms)].map(
    ([, named, bare, lazy]) => (named ?? bare ?? lazy) as string,
  )
  const found = specifiers.map((name) => {
    if (name.startsWith('#')) return name.slice(1)
    return name.startsWith('.') ? relative(root, resolve(root, dirname(file), name)) : name
  })
  importsOf.set(file, found)
  return found
}

/** Every module that a file may load, including itself. Imports of the files in `ends` are not followed. */
export const reachableFrom = (file: string, ends: readonly string[] = []): Set<string> => {
  const reached = new Set([file])
  // The loop also visits modules that are added to the set during the loop.
  for (const module of reached) {
    if (!module.endsWith('.ts') || ends.includes(module) || !existsSync(resolve(root, module))) continue
    for (const next of readImports(module)) reached.add(next)
  }
  return reached
}

export const needsOf = (file: string): Set<Need> => {
  const reached = reachableFrom(file, [databaseFixture])
  const needs = new Set<Need>()
  if (reached.has(databaseFixture)) needs.add('database')
  // Root runs PostgreSQL confined by one of our C programs, so a database needs programs too.
  if (needs.has('database') || starters.some((starter) => reached.has(starter))) needs.add('programs')
  return needs
}
