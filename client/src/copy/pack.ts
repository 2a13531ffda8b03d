// Makes a tar archive of files of this machine. Links are sent as links; sockets and devices are left out.
import type { Stats } from 'node:fs'
import { lstat, open, readdir, readlink, stat } from 'node:fs/promises'
import { blockBytes, paddingAfter, writeHeader } from './tar-header.ts'

const readBytes = 64 * 1024

export type PackParts = {
  /** Called with the number of bytes of contents that were read. */
  onBytes: (count: number) => void
  /** Called with what could not be sent as it is. */
  onTrouble: (name: Buffer, why: string) => void
}

const slash = Buffer.from('/')
const below = (parent: Buffer, name: Buffer): Buffer => Buffer.concat([parent, slash, name])

/** Windows has no permissions of this kind: all files may be executed there. */
const modeOf = ({ mode }: Stats): number => (process.platform === 'win32' ? 0o755 : mode & 0o777)

/** Returns the bytes of all files below a path, for the progress. */
export const sizeOf = async (path: Buffer): Promise<number> => {
  const found = await lstat(path).catch(() => undefined)
  if (!found?.isDirectory()) return found?.isFile() ? found.size : 0
  let sum = 0
  for (const name of await readdir(path, { encoding: 'buffer' }).catch(() => [])) sum += await sizeOf(below(path, name))
  return sum
}

/** Packs the contents of one file. A file that changes meanwhile has the length that its header says all the same. */
async function* packFile(path: Buffer, name: Buffer, found: Stats, parts: PackParts): AsyncGenerator<Buffer> {
  await using file = await open(path, 'r')
  const header = { name, kind: 'file', size: found.size, mode: modeOf(found), mtime: found.mtimeMs / 1000 } as const
  yield writeHeader({ ...header, linkName: Buffer.alloc(0) })
  let left = found.size
  while (left > 0) {
    const buffer = Buffer.allocUnsafe(Math.min(left, readBytes))
    const { bytesRead } = await file.read(buffer, 0, buffer.length)
    if (bytesRead === 0) {
      parts.onTrouble(name, 'became shorter while it was read')
      while (left > 0) {
        const zeros = Buffer.alloc(Math.min(left, readBytes))
        left -= zeros.length
        yield zeros
      }
      break
    }
    left -= bytesRead
    parts.onBytes(bytesRead)
    yield buffer.subarray(0, bytesRead)
  }
  yield paddingAfter(found.size)
}

async function* packBelow(path: Buffer, name: Buffer, found: Stats, parts: PackParts): AsyncGenerator<Buffer> {
  const header = { name, size: 0, mode: modeOf(found), mtime: found.mtimeMs / 1000, linkName: Buffer.alloc(0) }
  if (found.isFile()) {
    try {
      yield* packFile(path, name, found, parts)
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      // Only the opening of a file may fail: after its header, its contents must follow.
      if (code !== 'EACCES' && code !== 'ENOENT' && code !== 'EPERM') throw error
      parts.onTrouble(name, code)
    }
  } else if (found.isDirectory()) {
    yield writeHeader({ ...header, name: below(name, Buffer.alloc(0)), kind: 'directory' })
    const names = await readdir(path, { encoding: 'buffer' }).catch((error: NodeJS.ErrnoException) => {
      parts.onTrouble(name, error.code ?? error.message)
      return []
    })
    for (const inside of names) {
      const next = below(path, inside)
      const there = await lstat(next).catch(() => undefined)
      if (there !== undefined) yield* packBelow(next, below(name, inside), there, parts)
    }
  } else if (found.isSymbolicLink()) {
    yield writeHeader({ ...header, kind: 'symlink', linkName: await readlink(path, { encoding: 'buffer' }) })
  } else parts.onTrouble(name, 'is no file, directory or link')
}

/** Packs a file or a directory under a name. A link that `path` itself is, is followed. */
export async function* pack(path: string, name: string, parts: PackParts): AsyncGenerator<Buffer> {
  yield* packBelow(Buffer.from(path), Buffer.from(name), await stat(path), parts)
  yield Buffer.alloc(2 * blockBytes)
}
