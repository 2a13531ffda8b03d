/** A file to upload, and its path below the directory it was dropped on. */
export type Dropped = { file: File; path: string }

/** How many files one drop may have. */
export const mostDropped = 10_000

const fileOf = (entry: FileSystemFileEntry) => new Promise<File>((take, fail) => entry.file(take, fail))

/** All entries of a directory. The browser returns some at each call, and an empty list when there are no more. */
const entriesOf = async (directory: FileSystemDirectoryEntry): Promise<FileSystemEntry[]> => {
  const reader = directory.createReader()
  const all: FileSystemEntry[] = []
  for (;;) {
    const piece = await new Promise<FileSystemEntry[]>((take, fail) => reader.readEntries(take, fail))
    if (piece.length === 0 || all.length > mostDropped) return all
    all.push(...piece)
  }
}

/** The files that were dropped, and all files inside of dropped directories. Empty directories are left out. */
export const droppedFiles = async ({ items }: DataTransfer): Promise<Dropped[]> => {
  const found: Dropped[] = []
  const waiting: FileSystemEntry[] = []
  // All entries are taken before the first `await`: afterwards the browser has emptied the list of items.
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

/** The files that were chosen in a file input, whether it chooses files or directories. */
export const chosenFiles = (files: FileList): Dropped[] =>
  [...files].map((file) => ({ file, path: file.webkitRelativePath || file.name }))
