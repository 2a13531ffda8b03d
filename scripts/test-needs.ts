// Finds out what a test file needs, such as a database or the C programs, from the imports of the file.
import { existsSync, readFileSync } from 'node:fs'
import { dirname, relative, resolve } from 'node:path'

export type Need = 'database' | 'programs'

const root = resolve(import.meta.dirname, '..')
const databaseFixture = 'test/control/test-postgres.ts'
/** Modules of Node with which code can start programs. A worker can load any module. */
const starters = ['node:child_process', 'node:cluster', 'node:worker_threads']

const forms = /^(?:import|export)\s+(?!type\b)[^'"]*?\bfrom\s*'([^']+)'|^import\s*'([^']+)'|\bimport\(\s*'([^']+)'/gm

const importsOf = new Map<string, string[]>()

/** Returns the modules that a file imports, except types. A module of this checkout is a path relative to the checkout. */
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

/**
 * Returns every module that Node may load for a file, including the file. Imports of modules in `ends` are not
 * followed.
 */
export const reachableFrom = (file: string, ends: readonly string[] = []): Set<string> => {
  const reached = new Set([file])
  // While this loop runs, it adds modules to the set, and visits these modules too.
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
  // If the tests run as root, one of our C programs confines PostgreSQL. A database therefore needs the C programs too.
  if (needs.has('database') || starters.some((starter) => reached.has(starter))) needs.add('programs')
  return needs
}
