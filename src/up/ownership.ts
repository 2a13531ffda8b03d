// Root uses what lies in a data directory as it is. So nobody else may be able to put something of theirs in its place.
import { existsSync, realpathSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { Complaint } from './complaint.ts'

const nearestThatIsThere = (path: string): string =>
  existsSync(path) ? realpathSync(path) : nearestThatIsThere(dirname(path))

const parentsOf = (path: string): string[] => {
  const parent = dirname(path)
  return parent === path ? [] : [parent, ...parentsOf(parent)]
}

/** In a sticky directory, such as /tmp, others may add files but rename only their own, so nothing of ours can be replaced. */
const mayOthersReplaceIn = (directory: string): boolean => {
  const { mode, gid } = statSync(directory)
  return (mode & 0o1000) === 0 && ((mode & 0o002) !== 0 || ((mode & 0o020) !== 0 && gid !== 0))
}

/** Throws a Complaint where it is another user's. */
export const checkOwner = (path: string): void => {
  const { uid } = statSync(path)
  if (uid === 0 || uid === process.getuid?.()) return
  throw new Complaint(
    `${path} belongs to user ${uid}, who could put something in the place of what root uses there. Name another directory or, ` +
      `if nobody else has put anything into it, give it to root: chown root '${path}'`,
  )
}

/** Throws a Complaint where others could put theirs in the place of the directory; of one that is still to be made, too. */
export const checkPlace = (directory: string): void => {
  const isThere = existsSync(directory)
  const nearest = nearestThatIsThere(directory)
  const open = (isThere ? parentsOf(nearest) : [nearest, ...parentsOf(nearest)]).find(mayOthersReplaceIn)
  if (open !== undefined) {
    throw new Complaint(
      `other users may write to ${open}, and so could put something of theirs in the place of ${directory}. ` +
        `Name a directory elsewhere, or take that from them: chmod go-w '${open}'`,
    )
  }
  if (isThere) checkOwner(nearest)
}
