import type { FileInfo } from '../../../api/toolbox-client.ts'

export type Sort = { by: 'name' | 'size' | 'modifiedAt'; isDescending: boolean }

export type Kind = 'directory' | 'file' | 'link' | 'special'

/**
 * Returns the kind of an entry. The toolbox writes modes as Go does: the mode of a link begins with `L`, of a pipe with `p`, of a
 * socket with `S`, of a device with `D`.
 */
export const kindOf = ({ isDir, mode }: Pick<FileInfo, 'isDir' | 'mode'>): Kind => {
  if (isDir) return 'directory'
  if (mode.startsWith('L')) return 'link'
  return /^[pSD]/.test(mode) ? 'special' : 'file'
}

/**
 * Whether the name of a file has bytes that are not UTF-8. The dashboard cannot open such a file, because a page can send
 * only UTF-8 paths.
 */
export const isUnreachable = ({ path }: Pick<FileInfo, 'path'>): boolean => path.includes('\uFFFD')

const collator = new Intl.Collator('en', { numeric: true })

const compare = {
  name: (a: FileInfo, b: FileInfo) => collator.compare(a.name, b.name),
  size: (a: FileInfo, b: FileInfo) => a.size - b.size,
  modifiedAt: (a: FileInfo, b: FileInfo) => a.modifiedAt.localeCompare(b.modifiedAt),
} as const

/**
 * Returns the entries to show: directories first, then in the order of `sort`. Entries that are equal in that order are sorted by
 * name.
 */
export const shownEntries = (
  entries: readonly FileInfo[],
  { sort, areHiddenShown }: { sort: Sort; areHiddenShown: boolean },
): FileInfo[] => {
  const turn = sort.isDescending ? -1 : 1
  return entries
    .filter(({ name }) => areHiddenShown || !name.startsWith('.'))
    .sort(
      (a, b) => Number(b.isDir) - Number(a.isDir) || turn * compare[sort.by](a, b) || collator.compare(a.name, b.name),
    )
}
