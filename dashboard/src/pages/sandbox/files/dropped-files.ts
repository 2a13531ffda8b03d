/** A file to upload, and its path below the directory it was dropped on. */
export type Dropped = { file: File; path: string }

/** How many files one drop may have. */
export const mostDropped = 10_000

const fileOf = (entry: FileSystemFileEntry) => new Promise<File>((take, fail) => entry.file(take, fail))

/** The entries of a directory. The browser gives them in pieces; an empty piece is the last. */
const entriesOf = async (directory: FileSystemDirectoryEntry): Promise<FileSystemEntry[]> => {
  const reader = directory.createReader()
  const all: FileSystemEntry[] = []
  for (;;) {
    const piece = await new Promise<FileSystemEntry[]>((take, fail) => reader.readEntries(take, fail))
    if (piece.length === 0 || all.length > mostDropped) return all
    all.push(...piece)
  }
}

/** The files that were dropped, with those in dropped directories. Empty directories are left out. */
export const droppedFiles = async ({ items }: DataTransfer): Promise<Dropped[]> => {
  const found: Dropped[] = []
  const waiting: FileSystemEntry[] = []
  // The browser forgets the items once this function waits.
  for (const item of items) {
    const entry = item.webkitGetAsEntry()
    const file = item.getAsFile()
    if (entry !== null) waiting.push(entry)
    else if (file !== null) found.push({ file, path: file.name })
  }
  for (let entry = waiting.shift(); entry !== undefined; entry = waiting.shift()) {
    if (found.length > mostDropped) break
    if (entry.isDirectory) waiting.push(...(await entriesOf(entry as FileSystemDirectoryEntry)))
    else found.push({ file: await fileOf(entry as FileSystemFileEntry), path: entry.fullPath.replace(/^\//, '') })
  }
  return found
}

/** The files of a file input, also of one for directories. */
export const chosenFiles = (files: FileList): Dropped[] =>
  [...files].map((file) => ({ file, path: file.webkitRelativePath || file.name }))
