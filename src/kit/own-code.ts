// What a confined Node program has to see of this checkout to run one of its files.
import { lstatSync, realpathSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { Shown } from './confined.ts'

const code = resolve(import.meta.dirname, '../..')

const isLink = (path: string) => lstatSync(path).isSymbolicLink()

/** Not the whole checkout: a data directory may lie in it. */
export const ownCode = (): Shown[] => {
  const packages = join(code, 'node_modules')
  // In a worktree the packages may be a link to those of another one.
  const linked = isLink(packages) ? [{ from: realpathSync(packages) }] : []
  const parts = ['package.json', 'bin', 'src'].map((name) => ({ from: join(code, name) }))
  const node = realpathSync(process.execPath)
  const isSeen = ['/usr/', `${realpathSync(packages)}/`].some((place) => node.startsWith(place))
  return [...parts, { from: packages }, ...linked, ...(isSeen ? [] : [{ from: node }])]
}

/** The command of a file of this checkout. */
export const nodeCommand = (file: string, ...options: string[]): string[] => [
  realpathSync(process.execPath),
  ...options,
  join(code, file),
]
