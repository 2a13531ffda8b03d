// Records the id of control's database that has this host's sandboxes. The runner obeys no control with another database. Such
// a control would list none of these sandboxes, and the runner would remove their disks after a day.
import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { syncPathNow } from '#src/kit/sync-path.ts'

const name = 'database'

/** Returns whether `databaseId` is the recorded id of control's database. The first call on a host records the id. */
export const isOurDatabase = (directory: string, databaseId: string): boolean => {
  const path = join(directory, name)
  const known = textOf(path)
  if (known !== '') return known === databaseId
  writeFileSync(`${path}.new`, `${databaseId}\n`, { flush: true })
  renameSync(`${path}.new`, path)
  syncPathNow(directory)
  return true
}

const textOf = (path: string): string => {
  try {
    return readFileSync(path, 'utf8').trim()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return ''
    throw error
  }
}
