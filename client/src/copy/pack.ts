// Makes a tar archive from local files. A symbolic link stays a link in the archive; sockets and devices are left out.
import type { Stats } from 'node:fs'
import { lstat, open, readdir, readlink, stat } from 'node:fs/promises'
import { blockBytes, paddingAfter, writeHeader } from './tar-header.ts'

const readBytes = 64 * 1024

export type PackParts = {
  /** Called with the number of bytes that were read from a file. */
  onBytes: (count: number) => void
  /** Called with the name of each file that could not be packed unchanged, and the reason. */
  onTrouble: (name: Buffer, why: string) => void
}

const slash = Buffer.from('/')
const below = (parent: Buffer, name: Buffer): Buffer => Buffer.concat([parent, slash, name])

/** Returns the Unix permissions of a file. Windows has no such permissions, so each file from Windows becomes executable. */
const modeOf = ({ mode }: Stats): number => (process.platform === 'win32' ? 0o755 : mode & 0o777)

/** Returns the total size of all files below a path, in bytes, so that the progress can be shown. */
export const sizeOf = async (path: Buffer): Promise<number> => {
  const found = await lstat(path).catch(() => undefined)
  if (!found?.isDirectory()) return found?.isFile() ? found.size : 0
  let sum = 0
  for (const name of await readdir(path, { encoding: 'buffer' }).catch(() => [])) sum += await sizeOf(below(path, name))
  return sum
}

/** Packs one file. If its size changes meanwhile, its contents are cut or padded to the length in the header. */
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
      // These errors occur only at the open, before the header is written. So the file can still be left out.
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
  } else parts.onTrouble(name, 'is not a file, directory or link, and was not copied')
}

/** Packs a file or a directory under a new name. If `path` is a symbolic link, its target is packed. */
export async function* pack(path: string, name: string, parts: PackParts): AsyncGenerator<Buffer> {
  yield* packBelow(Buffer.from(path), Buffer.from(name), await stat(path), parts)
  yield Buffer.alloc(2 * blockBytes)
}
