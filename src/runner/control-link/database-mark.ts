// Which database the sandboxes of this host are in. Another one lists none of them, and what control does not list is removed in
// the end: so a server that was started over a wrong or an empty database would have every disk here removed.
import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { syncPathNow } from '#src/kit/sync-path.ts'

const name = 'database'

/** Where no other has been served from here so far, this is the one from now on. */
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
