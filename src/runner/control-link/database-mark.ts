// Records which database lists the sandboxes of this host. If control uses another or an empty database, it lists none of these
// sandboxes, and the runner would remove their disks after a while.
import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { syncPathNow } from '#src/kit/sync-path.ts'

const name = 'database'

/** Records the first database that this host serves. Returns whether `databaseId` is that database. */
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
