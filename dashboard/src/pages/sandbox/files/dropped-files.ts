/** A file to upload, and its path below the directory it was dropped on. */
export type Dropped = { file: File; path: string }

/** Maximum number of files in one drop. */
export const mostDropped = 10_000

const fileOf = (entry: FileSystemFileEntry) => new Promise<File>((take, fail) => entry.file(take, fail))

/** Returns all entries of a directory. Each call of `readEntries` returns only some entries, and the last call returns none. */
const entriesOf = async (directory: FileSystemDirectoryEntry): Promise<FileSystemEntry[]> => {
  const reader = directory.createReader()
  const all: FileSystemEntry[] = []
  for (;;) {
    const piece = await new Promise<FileSystemEntry[]>((take, fail) => reader.readEntries(take, fail))
    if (piece.length === 0 || all.length > mostDropped) return all
    all.push(...piece)
  }
}

/** Returns the dropped files and all files inside of dropped directories. Empty directories are left out. */
export const droppedFiles = async ({ items }: DataTransfer): Promise<Dropped[]> => {
  const found: Dropped[] = []
  const waiting: FileSystemEntry[] = []
  // Reads all items before the first `await`, because the browser empties the list `items` during an `await`.
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

/** Returns the files from a file input. If the user chose a directory, the paths contain the directory's name. */
export const chosenFiles = (files: FileList): Dropped[] =>
  [...files].map((file) => ({ file, path: file.webkitRelativePath || file.name }))
