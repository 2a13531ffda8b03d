// `alcove key`: prints the key alone, so that scripts can take it.
import { Complaint } from '#src/up/complaint.ts'
import { findAdminKey, findDataDirectory } from '#src/up/data-directory.ts'

const readKey = (directory: string): string | undefined => {
  try {
    const data = findDataDirectory(directory)
    return data && findAdminKey(data)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EACCES') throw new Complaint('only root may read the key; use sudo')
    throw error
  }
}

export const key = (directory: string): void => {
  const found = readKey(directory)
  if (!found) throw new Complaint(`${directory} has no key yet; the first "alcove up --data ${directory}" makes it`)
  process.stdout.write(`${found}\n`)
}
