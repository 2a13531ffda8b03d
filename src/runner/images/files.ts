// Reads and measures, as root, files that a confined program has written. Follows no links.
import { createHash } from 'node:crypto'
import { constants, createReadStream } from 'node:fs'
import { open, readdir, realpath, statfs } from 'node:fs/promises'
import { freeBytes } from '#src/kit/file-system.ts'
import { runCommand } from '#src/kit/run-command.ts'
import { ImageFailed } from './image-failed.ts'

/** Reads a small file. Throws if any part of its path is a symbolic link. */
export const readSmall = async (path: string, mostBytes: number): Promise<Buffer> => {
  if ((await realpath(path).catch(() => undefined)) !== path)
    throw new ImageFailed('corrupted', 'The image is damaged.')
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  try {
    const { size } = await file.stat()
    if (size > mostBytes) throw new ImageFailed('corrupted', 'The image is damaged: its description is too large.')
    return await file.readFile()
  } finally {
    await file.close()
  }
}

/** Returns the first `count` bytes of a file. Use only for files that no other program can change. */
export const firstBytesOf = async (path: string, count: number): Promise<Buffer> => {
  const file = await open(path)
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(count), 0, count, 0)
    return buffer.subarray(0, bytesRead)
  } finally {
    await file.close()
  }
}

export const sha256Of = async (path: string): Promise<string> => {
  const hash = createHash('sha256')
  for await (const chunk of createReadStream(path, { highWaterMark: 1024 * 1024 })) hash.update(chunk)
  return `sha256:${hash.digest('hex')}`
}

/** Returns the disk space in bytes of the files below a directory. */
export const bytesBelow = async (directory: string): Promise<number> => {
  const argv = ['du', '--summarize', '--one-file-system', '--block-size=1', directory]
  return Number.parseInt(await runCommand(argv, { timeoutMs: 300_000 }), 10)
}

/**
 * `owners`: the files' user and group ids, each once. The function `measure` leaves out ids below `firstOwner`, and lists at most
 * `mostOwners`.
 */
export type Measured = { bytes: number; files: number; owners: number[] }

/** Counts the files below a directory, their bytes on the disk and their owners. A file with several hard links counts once. */
export const measure = async (directory: string, firstOwner: number, mostOwners: number): Promise<Measured> => {
  const program = `
    $2 > 1 && $1 in seen { next }
    $2 > 1 { seen[$1] }
    { files++; blocks += $3 }
    { for (i = 4; i <= 5; i++) if ($i >= first && !($i in owners) && count < most) { owners[$i]; count++ } }
    END { printf "%.0f %.0f", blocks * 512, files; for (id in owners) printf " %s", id }`
  const script = 'find "$1" -xdev -printf "%i %n %b %U %G\\n" | awk -v first="$2" -v most="$3" "$4"'
  const argv = ['sh', '-c', script, 'sh', directory, String(firstOwner), String(mostOwners), program]
  const said = await runCommand(argv, { timeoutMs: 300_000 })
  const [bytes = 0, files = 0, ...owners] = said.split(' ').map(Number)
  return { bytes, files, owners: owners.sort((a, b) => a - b) }
}

/** Throws if the disk that stores images has less free space than `keepFreeBytes`, which the host needs for itself. */
export const checkRoom = async (directory: string, { keepFreeBytes }: { keepFreeBytes: number }): Promise<void> => {
  if ((await freeBytes(directory)) < keepFreeBytes)
    throw new ImageFailed('no-room', 'The disk that the runner keeps images on is full.')
}

/** Returns the number of inodes in use on a file system. 0 if the file system does not count inodes. */
export const inodesUsed = async (directory: string): Promise<number> => {
  const { files, ffree } = await statfs(directory)
  return files - ffree
}

export const namesBelow = async (directory: string): Promise<string[]> =>
  readdir(directory).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return []
    throw error
  })

export const syncTree = (directory: string) => runCommand(['sync', '--file-system', directory], { timeoutMs: 300_000 })
