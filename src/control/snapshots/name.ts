import { readDisplayText } from '#src/control/display-text.ts'
import { looksLikeId } from '#src/control/id-like.ts'
import { Problem } from '#src/problems.ts'

/** Checks the name of a snapshot. Slashes are allowed, because people use names of images (`team/python:3.12`). */
export const checkSnapshotName = (given: string): string => {
  const name = readDisplayText('name', given)
  const refuse = (why: string) => new Problem('bad_request', `name ${why}`)
  if (/[\\?#%\s]/.test(name)) throw refuse('must not contain spaces, \\ ? # or %, because it is used in paths')
  if (name.split('/').some((part) => part === '' || part === '.' || part === '..'))
    throw refuse('must not have empty parts, . or .. between its slashes')
  if (looksLikeId(name)) throw refuse('must not look like an id')
  return name
}
