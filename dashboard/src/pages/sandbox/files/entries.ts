import type { FileInfo } from '../../../api/toolbox-client.ts'

export type Sort = { by: 'name' | 'size' | 'modifiedAt'; isDescending: boolean }

export type Kind = 'directory' | 'file' | 'link' | 'special'

/** Returns the kind of an entry. The toolbox writes modes as Go does: `L` for a link, `p` a pipe, `S` a socket, `D` a device. */
export const kindOf = ({ isDir, mode }: Pick<FileInfo, 'isDir' | 'mode'>): Kind => {
  if (isDir) return 'directory'
  if (mode.startsWith('L')) return 'link'
  return /^[pSD]/.test(mode) ? 'special' : 'file'
}

/** Whether a name has bytes that are not UTF-8. The dashboard cannot open the file, because a page sends only UTF-8 paths. */
export const isUnreachable = ({ path }: Pick<FileInfo, 'path'>): boolean => path.includes('\uFFFD')

const collator = new Intl.Collator('en', { numeric: true })

const compare = {
  name: (a: FileInfo, b: FileInfo) => collator.compare(a.name, b.name),
  size: (a: FileInfo, b: FileInfo) => a.size - b.size,
  modifiedAt: (a: FileInfo, b: FileInfo) => a.modifiedAt.localeCompare(b.modifiedAt),
} as const

/** Returns the entries to show: directories first, then in the order of `sort`, and equal entries by name. */
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
