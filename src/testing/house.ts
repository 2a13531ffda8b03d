// Reads the source code for walls.test.ts: which files each file imports, and which database tables it writes.
import { globSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'

export const root = resolve(import.meta.dirname, '../..')

export type Import = { file: string; target: string }

export const textOf = (file: string): string => readFileSync(join(root, file), 'utf8')

/** Returns the source file that an import names. Undefined if it names a package or a module of Node. */
const targetOf = (file: string, specifier: string): string | undefined => {
  if (specifier.startsWith('#')) return specifier.slice(1)
  if (specifier.startsWith('.')) return relative(root, resolve(root, dirname(file), specifier))
  return undefined
}

export const specifiersOf = (file: string): string[] => {
  const forms = /^(?:import|export)\b[^'"]*\bfrom\s*'([^']+)'|^import\s*'([^']+)'|\bimport\(\s*'([^']+)'/gm
  return [...textOf(file).matchAll(forms)].map(([, named, bare, lazy]) => (named ?? bare ?? lazy)!)
}

export const isTest = (file: string): boolean => /\.test\.ts$|\/testing\//.test(file)

/** Every source file of our programs, without tests. */
export const programs: readonly string[] = globSync('{bin,src,client/src}/**/*.ts', { cwd: root })
  .filter((file) => !isTest(file))
  .sort()

export const imports: readonly Import[] = programs.flatMap((file) =>
  specifiersOf(file).flatMap((specifier) => {
    const target = targetOf(file, specifier)
    return target === undefined ? [] : [{ file, target }]
  }),
)

export const isBelow = (file: string, place: string): boolean => file === place || file.startsWith(`${place}/`)

export const say = ({ file, target }: Import): string => `${file} → ${target}`

const migrations = 'src/control/storage/migrations'

/** Returns the names of the tables that exist after all migrations of the database. */
export const tables = (): Set<string> => {
  const found = new Set(['migrations'])
  for (const file of globSync(`${migrations}/*.sql`, { cwd: root }).sort()) {
    const words = textOf(file).replaceAll(/--.*$/gm, '')
    for (const [, verb, name] of words.matchAll(
      /\b(create|drop)\s+table\s+(?:if\s+(?:not\s+)?exists\s+)?([a-z_]+)/gi,
    )) {
      if (verb!.toLowerCase() === 'create') found.add(name!)
      else found.delete(name!)
    }
  }
  return found
}

const withoutComments = (text: string) => text.replaceAll(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$|\s\/\/ .*$/gm, '')

const statements =
  /\b(?:insert\s+into|update|delete\s+from|merge\s+into|truncate(?:\s+table)?)\s+(?:only\s+)?("?[a-z_]+|\$\{)/gi
/**
 * Matches calls of `deleteOld` and `deleteBeyond` of src/control/storage, which delete old rows of the table that their
 * second argument names.
 */
const deletions = /\bdelete(?:Old|Beyond)\(\s*\w+,\s*'([a-z_]+)'/g

/** Returns the tables that the SQL in a source file writes. If a variable names a table, the result has the entry `${`. */
export const tablesWrittenBy = (file: string, known: ReadonlySet<string>): string[] => {
  const text = withoutComments(textOf(file))
  const named = [...text.matchAll(statements), ...text.matchAll(deletions)].map(([, name]) => name!.replace('"', ''))
  return [...new Set(named.filter((name) => name === '${' || known.has(name)))]
}
