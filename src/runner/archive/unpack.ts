// Restores a disk from an archive, completely or not at all. The hash of every chunk is checked before the chunk is unpacked.
import { createHash } from 'node:crypto'
import { mkdir, readdir, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { freeBytes } from '#src/kit/file-system.ts'
import { removeTree } from '#src/kit/remove-tree.ts'
import { runCommand } from '#src/kit/run-command.ts'
import type { ArchiveRef } from '#src/wire/runner-link.ts'
import { hasCode } from '../cgroup/files.ts'
import { type BaseContent, type BaseIdentity, nameOfContent } from '../images/base-identity.ts'
import { asSize } from '../images/limits.ts'
import { step } from '../launch.ts'
import { mostIds, uidBase } from '../oci/ids.ts'
import { archiveIdOfBase } from './base.ts'
import { contentsOf, fetchChunk } from './chunks.ts'
import { ArchiveFailed } from './failed.ts'
import { chunksOf, manifestKey, type Owner, ownerOf } from './keys.ts'
import { hashOf, type Manifest, maxManifestBytes, readManifest } from './manifest.ts'
import type { ObjectStore } from './store.ts'
import { type DiskParts, holderOf, writeDisk } from './tar.ts'

type UnpackParts = Owner & {
  launcher: string
  store: ObjectStore
  archive: Required<ArchiveRef>
  /** Where to restore the disk. `upper` and `etc` must be missing or empty. Their parent must have the disk's size limit. */
  disk: DiskParts
  /** Name of the disk's base image on this host, which replaces the recorded name. Absent: the recorded name stays. */
  below?: string
  onProgress?: (done: { bytes: number; of: number }) => void
  signal?: AbortSignal
}

type Streaming = Owner & Pick<UnpackParts, 'store' | 'onProgress' | 'signal'>

const chunksAhead = 3
/** Name of a directory beside `upper` and `etc`, where the disk is unpacked until it is complete. */
const unfinished = 'unpacking'

export const unpackDisk = async (parts: UnpackParts): Promise<void> => {
  const { store, archive, disk, below, signal } = parts
  const holder = holderOf(disk)
  await refuseToOverwrite(disk)
  const manifest = await openManifest(store, ownerOf(parts), archive, signal)
  await unpackInto(holder, manifest, stream(parts, manifest), parts, async (place) => {
    await refuseWhatNoDiskHas(place)
    if (below !== undefined) await nameBase(place, below)
    return async () => {
      await rename(join(place, 'upper'), disk.upper)
      await rename(join(place, 'etc'), disk.etc)
    }
  })
}

/** Returns the base image that is recorded in an archive of a disk. Undefined if an older runner made the archive. */
export const baseOfArchive = async (
  parts: Owner & Pick<UnpackParts, 'store' | 'archive' | 'signal'>,
): Promise<BaseIdentity | undefined> =>
  (await openManifest(parts.store, ownerOf(parts), parts.archive, parts.signal)).base

/** Fetches the files of a base image from the object store into the directory `rootfs`, completely or not at all. */
export const unpackBase = async ({
  content,
  rootfs,
  mostBytes,
  ...parts
}: Pick<UnpackParts, 'launcher' | 'store' | 'onProgress' | 'signal'> & {
  content: BaseContent
  rootfs: string
  mostBytes: number
}): Promise<void> => {
  const owner = { image: nameOfContent(content) }
  const stored = await parts.store.get(manifestKey(owner, archiveIdOfBase), maxManifestBytes, parts.signal)
  if (stored === undefined) throw new ArchiveFailed('missing', "The archive's base image is not in the archive store.")
  const manifest = readManifest(stored, owner, archiveIdOfBase)
  if (manifest.bytes > mostBytes)
    throw new ArchiveFailed('disk', "The archive's base image is larger than images may be.")
  const files = withHash(stream({ ...parts, ...owner }, manifest), content.sha256)
  await unpackInto(holderOf({ rootfs }), manifest, files, parts, async (place) => {
    await refuseIfFound(place, ['rootfs', ...isNoDirectory])
    return () => rename(join(place, 'rootfs'), rootfs)
  })
}

/** Yields the pieces of a stream. After the last piece, throws if the hash of the stream is not `sha256`. */
async function* withHash(pieces: AsyncIterable<Buffer>, sha256: string) {
  const hash = createHash('sha256')
  for await (const piece of pieces) {
    hash.update(piece)
    yield piece
  }
  if (hash.digest('hex') !== sha256)
    throw new ArchiveFailed('damaged', 'The files of the base image in the archive store do not match its hash.')
}

/**
 * Unpacks a tar stream into a new directory. `check` examines the files, and returns the function that moves them to their final
 * place.
 */
const unpackInto = async (
  holder: string,
  manifest: Manifest,
  pieces: AsyncIterable<Buffer>,
  { launcher, signal }: Pick<UnpackParts, 'launcher' | 'signal'>,
  check: (place: string) => Promise<() => Promise<void>>,
): Promise<void> => {
  await refuseWithoutRoom(holder, manifest)
  const place = join(holder, unfinished)
  await removeTree(place)
  try {
    await mkdir(place, { mode: 0o700 })
    await writeDisk(pieces, place, signal)
    const move = await check(place)
    // Removes devices, setuid bits and capabilities that no sandbox may set. Only archives of older runners may contain them.
    await runCommand([launcher, ...step.disarm(place, uidBase, mostIds)], { background: true, timeoutMs: 600_000 })
    signal?.throwIfAborted()
    // Sync first, so that a disk with its final name is complete, even after a power cut.
    await sync(place)
    await move()
    // Sync before returning, because the caller may then remove the archive.
    await sync(holder)
  } catch (error) {
    signal?.throwIfAborted()
    if (!hasCode(error, 'ENOSPC', 'EDQUOT')) throw error
    throw new ArchiveFailed('disk', 'There is no room on the disk for the contents of the archive.', { cause: error })
  } finally {
    await removeTree(place)
  }
}

/**
 * Writes the base image's name on this host into the disk. The old file may be a hard link to another file of the sandbox, so
 * it is removed first.
 */
const nameBase = async (place: string, image: string) => {
  const path = join(place, 'etc', nameOfBaseFile)
  await rm(path, { recursive: true, force: true })
  await writeFile(path, image, { flag: 'wx', mode: 0o644 })
}

/** Name of the file in a disk's directory `etc` that contains the name of the disk's base image. */
const nameOfBaseFile = 'image'
/** Maximum size in KiB of the file `etc/image`, which the runner reads into memory. */
const mostKiBOfName = 4

/**
 * Throws if `upper` or `etc` is not a directory, if `etc` contains a link or a special file, or if `etc/image` is too long. The
 * runner opens paths in these directories as root of this host, so a link could lead the runner to any file. The host that made
 * the archive may be compromised.
 */
const refuseWhatNoDiskHas = async (place: string) => {
  const isOdd = ['!', '-type', 'd', '!', '-type', 'f', '-print', '-quit']
  const isLong = ['-path', `etc/${nameOfBaseFile}`, '-size', `+${mostKiBOfName}k`, '-print', '-quit']
  await refuseIfFound(place, ['upper', 'etc', ...isNoDirectory])
  await refuseIfFound(place, ['etc', ...isOdd])
  await refuseIfFound(place, ['etc', '-maxdepth', '1', ...isLong])
}

const isNoDirectory = ['-maxdepth', '0', '!', '-type', 'd', '-print', '-quit']

/** Searches an unpacked archive with find(1), which gets the arguments `walk`. Throws if a file is found. */
const refuseIfFound = async (place: string, walk: readonly string[]) => {
  const found = await runCommand(['env', `--chdir=${place}`, 'find', ...walk], {
    background: true,
    timeoutMs: 600_000,
  })
  if (found !== '')
    throw new ArchiveFailed('damaged', 'The archive is damaged: it contains a file that no disk of a sandbox can have.')
}

const sync = (path: string) => runCommand(['sync', '--file-system', path], { timeoutMs: 600_000 })

const refuseToOverwrite = async ({ upper, etc }: DiskParts) => {
  for (const directory of [upper, etc]) {
    const names = await readdir(directory).catch((error: unknown) => {
      if (!hasCode(error, 'ENOENT')) throw error
      return []
    })
    if (names.length > 0)
      throw new ArchiveFailed('disk', 'The archive cannot be unpacked: the sandbox already has a disk on this runner.')
  }
}

/** Throws if the pool has too little space for the disk, before anything is written. All disks of this host share that space. */
const refuseWithoutRoom = async (holder: string, { bytes }: Manifest) => {
  const free = await freeBytes(holder)
  if (bytes <= free) return
  const reason = `The archive needs ${asSize(bytes)} of disk, and this runner has ${asSize(free)} free.`
  throw new ArchiveFailed('disk', reason)
}

const openManifest = async (
  store: ObjectStore,
  owner: Owner,
  { id, sha256 }: Required<ArchiveRef>,
  signal: AbortSignal | undefined,
): Promise<Manifest> => {
  const content = await store.get(manifestKey(owner, id), maxManifestBytes, signal)
  if (content === undefined) throw new ArchiveFailed('missing', 'The archive is missing in the archive store.')
  if (hashOf(content) !== sha256) {
    throw new ArchiveFailed(
      'damaged',
      'The archive is damaged: its table of contents does not match the hash that was saved.',
    )
  }
  return readManifest(content, owner, id)
}

/** Yields the stored chunks in order. While the caller unpacks one chunk, the next chunks are already being fetched. */
async function* storedChunks(parts: Streaming, { chunks }: Manifest): AsyncGenerator<Buffer> {
  const { store, signal } = parts
  const under = chunksOf(ownerOf(parts))
  const waiting = chunks.values()
  const ahead: Promise<Buffer>[] = []
  const fetchNext = () => {
    const { value: chunk } = waiting.next()
    if (chunk === undefined) return
    const fetching = fetchChunk(store, under, chunk, signal)
    fetching.catch(() => undefined)
    ahead.push(fetching)
  }
  for (let count = 0; count < chunksAhead; count += 1) fetchNext()
  try {
    for (let next = ahead.shift(); next !== undefined; next = ahead.shift()) {
      const stored = await next
      fetchNext()
      yield stored
    }
  } finally {
    await Promise.allSettled(ahead)
  }
}

/** Yields the tar stream, which is complete and unchanged: the manifest and the chunks were verified. */
async function* stream(parts: Streaming, manifest: Manifest) {
  let bytes = 0
  for await (const content of contentsOf(storedChunks(parts, manifest), manifest.chunks)) {
    yield content
    bytes += content.length
    parts.onProgress?.({ bytes, of: manifest.bytes })
  }
}
