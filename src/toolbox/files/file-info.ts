// Describes a file in the form that the API returns.
import type { Entry, Files } from '../agent/agent.ts'
import type { FileInfo } from './schemas.ts'

/**
 * Joins a directory and a relative path. The result is not normalized: `a/link/..` must stay, because the kernel resolves `..`
 * after links.
 */
export const below = (directory: string, relative: string): string =>
  directory.endsWith('/') ? `${directory}${relative}` : `${directory}/${relative}`

export const absolute = async (files: Files, path: string): Promise<string> => {
  if (path.startsWith('/')) return path
  const directory = await files.directory()
  return path === '' || path === '.' ? directory : below(directory, path)
}

const typeLetters: Record<Entry['type'], string> = {
  file: '',
  directory: 'd',
  symlink: 'L',
  fifo: 'p',
  socket: 'S',
  character: 'Dc',
  block: 'D',
}

/**
 * Writes the mode in the notation of Go's `FileMode`, which clients know: `-rw-r--r--`, `drwxr-xr-x`, `Lrwxrwxrwx`,
 * `dtrwxrwxrwx`.
 */
const modeText = ({ type, mode }: Entry): string => {
  const special = [...'ugt'].filter((_, at) => mode & (0o4000 >> at)).join('')
  const rights = [...'rwxrwxrwx'].map((letter, at) => (mode & (0o400 >> at) ? letter : '-')).join('')
  return `${typeLetters[type] + special || '-'}${rights}`
}

const nameOf = (path: string): string => path.split('/').findLast((part) => part !== '') ?? '/'

export const fileInfo = (entry: Entry, path: string): FileInfo => {
  const modifiedAt = entry.modifiedAt.toISOString()
  return {
    name: nameOf(path),
    path,
    isDir: entry.type === 'directory',
    size: entry.size,
    mode: modeText(entry),
    modTime: modifiedAt.replace('T', ' ').replace('Z', ' +0000 UTC'),
    modifiedAt,
    owner: entry.owner || String(entry.uid),
    group: entry.group || String(entry.gid),
    permissions: entry.mode.toString(8).padStart(4, '0'),
  }
}
