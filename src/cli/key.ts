// `alcove key`: prints the key alone, so that scripts can take it.
import { Complaint } from '#src/up/complaint.ts'
import { findAdminKey, findDataDirectory } from '#src/up/data-directory.ts'
import { findRunningUp, isJoinedRunner } from '#src/up/state-file.ts'

export const key = (directory: string): void => {
  const data = findDataDirectory(directory)
  const up = data && findRunningUp(data.stateFile)
  if (up && isJoinedRunner(up)) {
    throw new Complaint(`${directory} is of a runner only; the key is with its server, ${up.url}`)
  }
  const found = data && findAdminKey(data)
  if (!found) throw new Complaint(`${directory} has no key yet; the first "alcove up --data ${directory}" makes it`)
  process.stdout.write(`${found}\n`)
}
