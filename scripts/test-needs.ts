// What a test file needs before it can run. Its imports say so, however far they lead; nobody keeps a list.
//   database   It reaches the fixture that starts PostgreSQL. What lies behind the fixture is the fixture's need.
//   programs   It reaches a module of Node that starts programs, so it may run those of the system and our own C programs.
// A file with neither need is pure code.
import { existsSync, readFileSync } from 'node:fs'
import { dirname, relative, resolve } from 'node:path'

export type Need = 'database' | 'programs'

const root = resolve(import.meta.dirname, '..')
const databaseFixture = 'test/control/test-postgres.ts'
/** A worker can import anything, so it counts as well. */
const starters = ['node:child_process', 'node:cluster', 'node:worker_threads']

const forms = /^(?:import|export)\s+(?!type\b)[^'"]*?\bfrom\s*'([^']+)'|^import\s*'([^']+)'|\bimport\(\s*'([^']+)'/gm

const importsOf = new Map<string, string[]>()

/** The modules that a file imports. Files of ours are paths from the root; imports of types are erased and do not count. */
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

/** Every module that a file may load, itself included. The walk reads no further than the files of `ends`. */
export const reachableFrom = (file: string, ends: readonly string[] = []): Set<string> => {
  const reached = new Set([file])
  // A set hands out what is added to it while it is walked.
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
  // Root runs PostgreSQL confined, by one of our C programs.
  if (needs.has('database') || starters.some((starter) => reached.has(starter))) needs.add('programs')
  return needs
}
