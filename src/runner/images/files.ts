// Reads and measures, as root, files that a confined program has written. Follows no links.
import { createHash } from 'node:crypto'
import { constants, createReadStream } from 'node:fs'
import { open, readdir, realpath, statfs } from 'node:fs/promises'
import { freeBytes } from '#src/kit/file-system.ts'
import { runCommand } from '#src/kit/run-command.ts'
import { ImageFailed } from './image-failed.ts'

/** Reads a small file. Throws if any link is on the path. */
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

export const sha256Of = async (path: string): Promise<string> => {
  const hash = createHash('sha256')
  for await (const chunk of createReadStream(path, { highWaterMark: 1024 * 1024 })) hash.update(chunk)
  return `sha256:${hash.digest('hex')}`
}

const measured = async (directory: string, unit: string) =>
  Number.parseInt(
    await runCommand(['du', '--summarize', '--one-file-system', unit, directory], { timeoutMs: 300_000 }),
    10,
  )

/** Disk space of the files below a directory. */
export const bytesBelow = (directory: string) => measured(directory, '--block-size=1')

/** Number of files and directories below a directory, including the directory itself. */
export const filesBelow = (directory: string) => measured(directory, '--inodes')

/** Users and groups, with ids from `first` on, that own files below a directory. Returns each id once, and at most `most` ids. */
export const ownersFrom = async (directory: string, first: number, most: number): Promise<number[]> => {
  const script =
    'find "$1" -xdev \\( -uid "+$2" -o -gid "+$2" \\) -printf "%U\\n%G\\n" | sort -nu | awk -v above="$2" \'$1 > above\' | head -n "$3"'
  const said = await runCommand(['sh', '-c', script, 'sh', directory, `${first - 1}`, `${most}`], {
    timeoutMs: 300_000,
  })
  return said.split('\n').filter(Boolean).map(Number)
}

/** Throws if the disk of images is nearly full, because the host needs the rest. */
export const checkRoom = async (directory: string, { keepFreeBytes }: { keepFreeBytes: number }): Promise<void> => {
  if ((await freeBytes(directory)) < keepFreeBytes)
    throw new ImageFailed('no-room', 'The disk that the runner keeps images on is full.')
}

/** Inodes in use; 0 if the file system does not count them. */
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
