// Returns what a confined Node program must see of this checkout to run, and how to start it.
import { lstatSync, realpathSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { Shown } from './confined.ts'

const code = resolve(import.meta.dirname, '../..')

const isLink = (path: string) => lstatSync(path).isSymbolicLink()

/**
 * Returns the files of Alcove that a confined Node program needs. The program must not see the whole checkout, because the
 * checkout may contain a data directory.
 */
export const ownCode = (): Shown[] => {
  const packages = join(code, 'node_modules')
  // In a git worktree, node_modules may be a link. The program then needs the link's target too.
  const linked = isLink(packages) ? [{ from: realpathSync(packages) }] : []
  const parts = ['package.json', 'bin', 'src'].map((name) => ({ from: join(code, name) }))
  const node = realpathSync(process.execPath)
  const isSeen = ['/usr/', `${realpathSync(packages)}/`].some((place) => node.startsWith(place))
  return [...parts, { from: packages }, ...linked, ...(isSeen ? [] : [{ from: node }])]
}

/** Returns the command that runs a file of this checkout with Node. */
export const nodeCommand = (file: string, ...options: string[]): string[] => [
  realpathSync(process.execPath),
  ...options,
  join(code, file),
]
