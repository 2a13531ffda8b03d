// Reading and measuring what a confined program has written, as root and without being led elsewhere by it.
import { createHash } from 'node:crypto'
import { constants, createReadStream } from 'node:fs'
import { open, readdir, realpath, statfs } from 'node:fs/promises'
import { freeBytes } from '#src/kit/file-system.ts'
import { runCommand } from '#src/kit/run-command.ts'
import { ImageFailed } from './image-failed.ts'

/** The content of a small file that is really at this path, which no link on the way is. */
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

/** What the files below a directory take up on disk. */
export const bytesBelow = (directory: string) => measured(directory, '--block-size=1')

/** Itself and directories included. */
export const filesBelow = (directory: string) => measured(directory, '--inodes')

/** Throws when the disk that images lie on is nearly full: the host needs the rest more. */
export const checkRoom = async (directory: string, { keepFreeBytes }: { keepFreeBytes: number }): Promise<void> => {
  if ((await freeBytes(directory)) < keepFreeBytes)
    throw new ImageFailed('no-room', 'The disk that the runner keeps images on is full.')
}

/** Inodes in use; zero on file systems that do not count them. */
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
