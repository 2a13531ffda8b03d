// Programs without privileges read the code as everybody may. From a clone or an update under umask 077 they can read nothing,
// which they would say in words that do not tell why.
import { readdirSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { Complaint } from './complaint.ts'

const mayOthersRead = (path: string): boolean => {
  const status = statSync(path, { throwIfNoEntry: false })
  // A link to nowhere, such as the lock of an editor.
  if (status === undefined) return true
  const needed = status.isDirectory() ? 0o005 : 0o004
  return (status.mode & needed) === needed
}

/** Each before what lies in it. */
const allIn = (directory: string): string[] => [
  directory,
  ...readdirSync(directory, { withFileTypes: true, recursive: true }).map((each) => join(each.parentPath, each.name)),
]

const from = (top: string, path: string): string[] => (path === top ? [top] : [...from(top, dirname(path)), path])

/** Checks that the unprivileged programs can read the code. Looks only at the first layer of npm's packages. Throws a Complaint. */
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
    `only its owner may read ${closed}, as after a clone under umask 077; programs without privileges must too. ` +
      `Let them: chmod -R go+rX '${code}'`,
  )
}
