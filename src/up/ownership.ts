// Checks who can replace a data directory or its files. Programs of root trust these files, so no other user may replace them.
import { existsSync, realpathSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { Complaint } from './complaint.ts'

const nearestThatIsThere = (path: string): string =>
  existsSync(path) ? realpathSync(path) : nearestThatIsThere(dirname(path))

const parentsOf = (path: string): string[] => {
  const parent = dirname(path)
  return parent === path ? [] : [parent, ...parentsOf(parent)]
}

/**
 * Whether other users may replace files in a directory. In a sticky directory such as /tmp, users may replace only their own files.
 */
const mayOthersReplaceIn = (directory: string): boolean => {
  const { mode, gid } = statSync(directory)
  return (mode & 0o1000) === 0 && ((mode & 0o002) !== 0 || ((mode & 0o020) !== 0 && gid !== 0))
}

/** Throws an error for the operator if the path belongs to a user other than root and the user of this process. */
export const checkOwner = (path: string): void => {
  const { uid } = statSync(path)
  if (uid === 0 || uid === process.getuid?.()) return
  throw new Complaint(
    `${path} belongs to user ${uid}, who could replace files that root uses there. Choose another directory or, ` +
      `if nobody else has put files into this directory, give it to root: chown root '${path}'`,
  )
}

/**
 * Throws an error for the operator if another user could replace the directory. If the directory is missing, checks its nearest
 * existing parent.
 */
export const checkPlace = (directory: string): void => {
  const isThere = existsSync(directory)
  const nearest = nearestThatIsThere(directory)
  const open = (isThere ? parentsOf(nearest) : [nearest, ...parentsOf(nearest)]).find(mayOthersReplaceIn)
  if (open !== undefined) {
    throw new Complaint(
      `other users may write to ${open}, so they could replace ${directory}. ` +
        `Choose a directory elsewhere, or remove the permission of other users: chmod go-w '${open}'`,
    )
  }
  if (isThere) checkOwner(nearest)
}
