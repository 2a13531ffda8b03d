// Checks that programs without privileges can read Alcove's code. After a clone or an update under umask 077 they cannot, and the
// errors of these programs would not say why.
import { readdirSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { Complaint } from './complaint.ts'

const mayOthersRead = (path: string): boolean => {
  const status = statSync(path, { throwIfNoEntry: false })
  // A symbolic link without a target, such as the lock file of an editor, need not be readable.
  if (status === undefined) return true
  const needed = status.isDirectory() ? 0o005 : 0o004
  return (status.mode & needed) === needed
}

/** Lists a directory and everything in it. Each directory comes before what it contains. */
const allIn = (directory: string): string[] => [
  directory,
  ...readdirSync(directory, { withFileTypes: true, recursive: true }).map((each) => join(each.parentPath, each.name)),
]

const from = (top: string, path: string): string[] => (path === top ? [top] : [...from(top, dirname(path)), path])

/**
 * Throws an error for the operator if programs without privileges cannot read Alcove's code. Below node_modules, checks only the
 * packages' directories.
 */
export const checkCodeIsReadable = (code: string, node = process.execPath): void => {
  const packages = join(code, 'node_modules')
  const paths = [
    ...[code, join(code, 'package.json'), ...allIn(join(code, 'bin')), ...allIn(join(code, 'src'))],
    ...[packages, ...readdirSync(packages).map((name) => join(packages, name))],
    ...(node.startsWith(`${code}/`) ? from(code, node) : []),
  ]
  const closed = paths.find((path) => !mayOthersRead(path))
  if (closed === undefined) return
  throw new Complaint(
    `only its owner may read ${closed}, for example after a clone with umask 077. Programs without privileges must read it too. ` +
      `Give them the permission: chmod -R go+rX '${code}'`,
  )
}
