// Unpacks the archives that ADD copies: tar files, plain or compressed by gzip, zstd, bzip2 or xz.
import type { EventLoopTurns } from '#src/kit/yield.ts'
import { unpackRecord } from '#src/toolbox/agent/agent.ts'
import { ImageFailed } from '../images/image-failed.ts'
import { inflate } from '../inflate.ts'
import { readTar } from './tar-reader.ts'
import { partsOf } from './tree.ts'

type ArchiveKind = 'tar' | 'gzip' | 'zstd' | 'bzip2' | 'xz'

const mostEntries = 1_000_000

const magics: readonly [ArchiveKind, number, string][] = [
  ['gzip', 0, '\x1f\x8b\x08'],
  ['zstd', 0, '\x28\xb5\x2f\xfd'],
  ['bzip2', 0, 'BZh'],
  ['xz', 0, '\xfd7zXZ\0'],
  ['tar', 257, 'ustar'],
]

/** Number of bytes at the beginning of a file that are needed to recognize an archive. */
export const headBytes = 262

/** Recognizes an archive by its first bytes. The file's name does not matter. */
export const archiveKind = (head: Buffer): ArchiveKind | undefined =>
  magics.find(([, at, magic]) => head.toString('latin1', at, at + magic.length) === magic)?.[0]

const plain = (contents: AsyncIterable<Buffer>, kind: ArchiveKind): AsyncIterable<Buffer> =>
  kind === 'tar' ? contents : inflate(contents, kind)

async function* bounded(pieces: AsyncIterable<Buffer>, mostBytes: number): AsyncGenerator<Buffer> {
  let bytes = 0
  try {
    for await (const piece of pieces) {
      bytes += piece.length
      if (bytes > mostBytes) throw new ImageFailed('too-large', 'an archive unpacks to more than the image may have')
      yield piece
    }
  } catch (error) {
    if (error instanceof ImageFailed) throw error
    throw new ImageFailed('corrupted', 'an archive cannot be unpacked: it is damaged', { cause: error })
  }
}

/**
 * Yields a record for each entry of the archive. After the record of a file, yields its contents. With these records, the agent
 * unpacks the archive into `directory`.
 */
export async function* unpackedFrom(
  contents: AsyncIterable<Buffer>,
  kind: ArchiveKind,
  directory: string,
  mostBytes: number,
  turns: EventLoopTurns,
): AsyncGenerator<Buffer> {
  const to = Buffer.from(directory).toString('latin1').replace(/\/+$/, '')
  const below = (path: string) => Buffer.from([to, ...partsOf(path)].join('/') || '/', 'latin1')
  let entries = 0
  for await (const { entry, contents: inside } of readTar(bounded(plain(contents, kind), mostBytes), turns)) {
    entries += 1
    if (entries > mostEntries) throw new ImageFailed('too-many-files', 'an archive has too many files')
    const { type, path, target, mode, uid, gid, modifiedSeconds, size } = entry
    const where = below(path)
    const owned = { path: where, mode, uid, gid, modifiedSeconds }
    if (type === 'hard link') yield unpackRecord({ type, path: where, target: below(target) })
    else if (type === 'link') yield unpackRecord({ type, path: where, target: Buffer.from(target, 'latin1'), uid, gid })
    else if (type === 'directory') yield unpackRecord({ type, ...owned })
    else {
      yield unpackRecord({ type, ...owned, size })
      yield* inside
    }
  }
}
