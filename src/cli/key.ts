// `alcove key`: prints the admin key and nothing else, so that scripts can use the output.
import { commandFor } from '#src/up/command-for.ts'
import { Complaint } from '#src/up/complaint.ts'
import { findAdminKey, findDataDirectory } from '#src/up/data-directory.ts'
import { findUpState, isJoinedRunner } from '#src/up/state-file.ts'

export const key = (directory: string): void => {
  const data = findDataDirectory(directory)
  const last = data && findUpState(data.stateFile)
  if (last && isJoinedRunner(last)) {
    throw new Complaint(`${directory} belongs to a runner that joined ${last.url}; keys are made on that server`)
  }
  const found = data && findAdminKey(data)
  if (!found)
    throw new Complaint(`${directory} has no key yet; the first start makes the key: ${commandFor('up', directory)}`)
  process.stdout.write(`${found}\n`)
}
