// Unpacks layers over a directory that may have the files of lower layers. umoci runs as root of a user namespace, so a hostile
// layer can make no device and can reach only that directory.
//
// umoci verifies that each layer's hash is its diff id. This file makes the manifest and the configuration for umoci, so umoci
// reads only the given layers.
import { createHash } from 'node:crypto'
import { mkdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { runCommand } from '#src/kit/run-command.ts'
import { commonIds, groupLargeIds, mostIds, uidBase } from '../oci/ids.ts'
import type { BlobsOfOrigin } from './blobs.ts'
import { checkRoom, firstBytesOf, measure } from './files.ts'
import { ImageFailed } from './image-failed.ts'
import { asSize, type ImageLimits } from './limits.ts'
import { type Descriptor, ownArchitecture } from './manifest.ts'
import { bytesWrittenBelow, runJob } from './workshop.ts'

/** A stored layer. `diffId`: the digest of its unpacked content. */
export type Layer = Descriptor & { diffId: string }

export type Unpacking = {
  scratch: string
  /** The directory into which the layers are unpacked. */
  rootfs: string
  layers: readonly Layer[]
  /** Bytes of the files that are already in `rootfs`. Undefined if `rootfs` is empty. */
  presentBytes?: number | undefined
  mostBytes: number
  limits: ImageLimits
  signal?: AbortSignal | undefined
  onWritten: (bytes: number) => void
  /** Returns the number of files that were made in `rootfs` so far. */
  filesMade: () => Promise<number>
}

export type Unpacked = {
  sizeBytes: number
  /** User ids that own files and are too large for the usual user id map of a sandbox (oci/ids.ts). */
  largeIds: number[]
}

const GiB = 1024 ** 3
const capabilities = ['CAP_CHOWN', 'CAP_DAC_OVERRIDE', 'CAP_FOWNER', 'CAP_FSETID', 'CAP_SETFCAP']
/** Unpacking may make this many times the image's maximum number of files, because layers may replace files. */
const replacedFiles = 4

export const unpackLayers = async (blobs: BlobsOfOrigin, unpacking: Unpacking): Promise<Unpacked> => {
  const { scratch, rootfs, mostBytes, limits, signal, onWritten, filesMade, presentBytes = 0 } = unpacking
  const layout = await makeLayout(blobs, unpacking)
  const madeBefore = await filesMade()
  const mostFiles = Math.min(limits.mostFiles, Math.ceil((mostBytes / GiB) * limits.filesPerGiB))

  const outcome = await runJob(scratch, {
    argv: ['umoci', '--log', 'error', 'raw', 'unpack', '--image', '/layout:image', '/rootfs'],
    views: [
      { from: layout, at: '/layout' },
      { from: rootfs, at: '/rootfs', writable: true },
    ],
    ids: { base: uidBase, count: mostIds },
    capabilities,
    network: 'none',
    largestFileBytes: mostBytes,
    timeoutMs: limits.timeoutMs,
    tookTooLong: () =>
      new ImageFailed('took-too-long', `The image was not unpacked within ${limits.timeoutMs / 1000} s.`),
    signal,
    watch: async (pid) => {
      const written = await bytesWrittenBelow(pid)
      if (presentBytes + written > mostBytes) throw tooLarge(mostBytes)
      if ((await filesMade()) - madeBefore > mostFiles * replacedFiles) throw tooManyFiles(mostFiles)
      await checkRoom(scratch, limits)
      onWritten(written)
    },
  })
  if (outcome.exitCode !== 0) throw complaintOf(outcome.stderr, mostBytes)
  const { bytes, files, owners } = await measure(rootfs, uidBase + commonIds, mostOwners)
  if (files > mostFiles) throw tooManyFiles(mostFiles)
  return { sizeBytes: bytes, largeIds: largeIdsOf(owners) }
}

/**
 * An image is refused if its files have at least this many owners whose ids are too large for the usual user id map (oci/ids.ts).
 */
const mostOwners = 10_000

const largeIdsOf = (owners: readonly number[]): number[] => {
  const ids = owners.map((owner) => owner - uidBase)
  if (owners.length < mostOwners && groupLargeIds(ids) !== undefined) return ids
  throw new ImageFailed(
    'unsupported',
    `The image has files of too many users and groups with ids above ${commonIds - 1}.`,
  )
}

export const tooLarge = (mostBytes: number) =>
  new ImageFailed(
    'too-large',
    `The image is too large: unpacked it has more than ${asSize(mostBytes)}, which is what its snapshot's disk allows.`,
  )

const tooManyFiles = (most: number) => new ImageFailed('too-many-files', `The image has more than ${most} files.`)

const nameOf = (digest: string) => digest.slice('sha256:'.length)
const gzipMagic = Buffer.from([0x1f, 0x8b])
const kind = (name: string) => `application/vnd.oci.image.${name}`

/** Makes an OCI layout that contains only these layers and that all users can read. */
const makeLayout = async (
  blobs: BlobsOfOrigin,
  { scratch, rootfs, layers, presentBytes }: Unpacking,
): Promise<string> => {
  const layout = join(scratch, `layers-${nameOf(layers[0]?.diffId ?? 'sha256:none').slice(0, 16)}`)
  const names = join(layout, 'blobs/sha256')
  await mkdir(names, { recursive: true })
  const add = async (content: Buffer | string, mediaType: string) => {
    const digest = `sha256:${createHash('sha256').update(content).digest('hex')}`
    await writeFile(join(names, nameOf(digest)), content)
    return { mediaType, digest, size: Buffer.byteLength(content) }
  }
  const offered = async ({ digest, size }: Layer) => {
    if (!(await blobs.offer(digest, names))) throw new Error(`the layer ${digest} is gone`)
    const isPacked = (await firstBytesOf(join(names, nameOf(digest)), gzipMagic.length)).equals(gzipMagic)
    return { mediaType: kind(isPacked ? 'layer.v1.tar+gzip' : 'layer.v1.tar'), digest, size }
  }
  // umoci would reset the owner and mode that lower layers have set on the root directory. A first layer that contains only this
  // directory keeps owner and mode.
  const below = presentBytes === undefined ? [] : [await add(await rootOf(rootfs, scratch), kind('layer.v1.tar'))]
  const diffIds = [...below.map(({ digest }) => digest), ...layers.map(({ diffId }) => diffId)]
  const described = { architecture: ownArchitecture, os: 'linux', rootfs: { type: 'layers', diff_ids: diffIds } }
  const config = await add(JSON.stringify(described), kind('config.v1+json'))
  const all = [...below]
  for (const layer of layers) all.push(await offered(layer))
  const mediaType = kind('manifest.v1+json')
  const manifest = await add(JSON.stringify({ schemaVersion: 2, mediaType, config, layers: all }), mediaType)
  const entry = { ...manifest, annotations: { 'org.opencontainers.image.ref.name': 'image' } }
  await writeFile(join(layout, 'oci-layout'), '{"imageLayoutVersion":"1.0.0"}')
  await writeFile(join(layout, 'index.json'), JSON.stringify({ schemaVersion: 2, manifests: [entry] }))
  return layout
}

/** Makes a layer that contains only the root directory as it is now: owner, mode, time and extended attributes. */
const rootOf = async (rootfs: string, scratch: string): Promise<Buffer> => {
  const { uid, gid } = await stat(rootfs)
  const file = join(scratch, 'root.tar')
  const exactly = ['--format=posix', '--pax-option=delete=atime,delete=ctime', '--xattrs', '--xattrs-include=*']
  const owner = [`--owner=:${uid - uidBase}`, `--group=:${gid - uidBase}`]
  await runCommand(['tar', '--create', '--file', file, ...exactly, ...owner, '--no-recursion', '-C', rootfs, '.'])
  return readFile(file)
}

const complaintOf = (stderr: string, mostBytes: number): ImageFailed => {
  const cause = new Error(stderr.trim().slice(-2000) || 'umoci failed')
  if (/no space left|disk quota/i.test(stderr))
    return new ImageFailed('no-room', 'The disk that the runner keeps images on is full.', { cause })
  if (/file too large/i.test(stderr)) return tooLarge(mostBytes)
  if (/chown.*invalid argument/i.test(stderr))
    return new ImageFailed('unsupported', `The image has files of users or groups with ids above ${mostIds - 1}.`, {
      cause,
    })
  return new ImageFailed('corrupted', 'The image could not be unpacked: one of its layers is damaged.', { cause })
}
