// Makes the directory of an image's files from its layers. umoci runs as root of a user namespace with the ids of sandboxes. So
// owners are shifted, no device can be made, and a hostile layer sees only the directory.
//
// umoci hashes every layer while it unpacks, and fails if a hash differs from the diff id at its position in the configuration.
// So the directory matches the diff ids if there are as many diff ids as layers, which `fetch.ts` checks.
import { chown, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { commonIds, groupLargeIds, mostIds, uidBase } from '../oci/ids.ts'
import type { BlobsOfOrigin } from './blobs.ts'
import { checkRoom, filesBelow, inodesUsed, ownersFrom } from './files.ts'
import { ImageFailed } from './image-failed.ts'
import { asSize, type ImageLimits } from './limits.ts'
import type { Descriptor } from './manifest.ts'
import { bytesWrittenBelow, runJob, TookTooLong } from './workshop.ts'

export type Unpacking = {
  scratch: string
  /** Descriptor of the manifest. Everything that it names is in `blobs`. */
  manifest: Descriptor
  parts: readonly Descriptor[]
  mostBytes: number
  limits: ImageLimits
  signal?: AbortSignal | undefined
  onWritten: (bytes: number) => void
}

const GiB = 1024 ** 3
const capabilities = ['CAP_CHOWN', 'CAP_DAC_OVERRIDE', 'CAP_FOWNER', 'CAP_FSETID', 'CAP_SETFCAP']

export type Unpacked = {
  /** The new directory, below `scratch`. */
  rootfs: string
  /** Ids of users that not every sandbox has. */
  largeIds: number[]
}

export const unpackLayers = async (blobs: BlobsOfOrigin, unpacking: Unpacking): Promise<Unpacked> => {
  const { scratch, mostBytes, limits, signal, onWritten } = unpacking
  const layout = await makeLayout(blobs, unpacking)
  const out = join(scratch, 'unpacked')
  await mkdir(out, { mode: 0o700 })
  await chown(out, uidBase, uidBase)
  const inodesBefore = await inodesUsed(out)
  const mostFiles = Math.min(limits.mostFiles, Math.ceil((mostBytes / GiB) * limits.filesPerGiB))

  const outcome = await runJob(scratch, {
    argv: ['umoci', '--log', 'error', 'raw', 'unpack', '--image', '/layout:image', '/out/rootfs'],
    views: [
      { from: layout, at: '/layout' },
      { from: out, at: '/out', writable: true },
    ],
    ids: { base: uidBase, count: mostIds },
    capabilities,
    network: 'none',
    largestFileBytes: mostBytes,
    timeoutMs: limits.timeoutMs,
    signal,
    watch: async (pid) => {
      const written = await bytesWrittenBelow(pid)
      if (written > mostBytes) throw tooLarge(mostBytes)
      if ((await inodesUsed(out)) - inodesBefore > mostFiles) throw tooManyFiles(mostFiles)
      await checkRoom(out, limits)
      onWritten(written)
    },
  })
  if (outcome.stopped instanceof TookTooLong)
    throw new ImageFailed('took-too-long', `The image was not unpacked within ${limits.timeoutMs / 1000} s.`)
  if (outcome.stopped !== undefined) throw outcome.stopped
  if (outcome.exitCode !== 0) throw complaintOf(outcome.stderr, mostBytes)
  if ((await filesBelow(out)) > mostFiles) throw tooManyFiles(mostFiles)
  return { rootfs: join(out, 'rootfs'), largeIds: await largeIdsBelow(out) }
}

/** An image with this many owners above the common ids is refused, even if the ids are close to each other. */
const mostOwners = 10_000

const largeIdsBelow = async (directory: string): Promise<number[]> => {
  const owners = await ownersFrom(directory, uidBase + commonIds, mostOwners)
  const ids = owners.map((owner) => owner - uidBase)
  if (owners.length < mostOwners && groupLargeIds(ids) !== undefined) return ids
  throw new ImageFailed('unsupported', `The image has files of too many users above ${commonIds - 1}.`)
}

export const tooLarge = (mostBytes: number) =>
  new ImageFailed(
    'too-large',
    `The image is too large: unpacked it has more than ${asSize(mostBytes)}, which is what its snapshot's disk allows.`,
  )

const tooManyFiles = (most: number) => new ImageFailed('too-many-files', `The image has more than ${most} files.`)

/** Makes an OCI layout with only this image, readable for all users. */
const makeLayout = async (blobs: BlobsOfOrigin, { scratch, manifest, parts }: Unpacking): Promise<string> => {
  const layout = join(scratch, 'layers')
  const names = join(layout, 'blobs/sha256')
  await mkdir(names, { recursive: true })
  for (const { digest } of [manifest, ...parts])
    if (!(await blobs.offer(digest, names))) throw new Error(`the layer ${digest} is gone`)
  const entry = {
    mediaType: 'application/vnd.oci.image.manifest.v1+json',
    ...manifest,
    annotations: { 'org.opencontainers.image.ref.name': 'image' },
  }
  await writeFile(join(layout, 'oci-layout'), '{"imageLayoutVersion":"1.0.0"}')
  await writeFile(join(layout, 'index.json'), JSON.stringify({ schemaVersion: 2, manifests: [entry] }))
  return layout
}

const complaintOf = (stderr: string, mostBytes: number): ImageFailed => {
  const cause = new Error(stderr.trim().slice(-2000) || 'umoci failed')
  if (/no space left|disk quota/i.test(stderr))
    return new ImageFailed('no-room', 'The disk that the runner keeps images on is full.', { cause })
  if (/file too large/i.test(stderr)) return tooLarge(mostBytes)
  if (/chown.*invalid argument/i.test(stderr))
    return new ImageFailed('unsupported', `The image has files of users above ${mostIds - 1}.`, { cause })
  return new ImageFailed('corrupted', 'The image could not be unpacked: one of its layers is damaged.', { cause })
}
