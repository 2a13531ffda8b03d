// What bounds the bringing of one image. Settings may change them; tests make them small.

export type ImageLimits = {
  /** Compressed or not; what is asked for may be less. */
  largestBytes: number
  mostFiles: number
  /** For each GiB that the image may have. A file without contents takes room, too. */
  filesPerGiB: number
  /** Share of the images' file system that all images of one organization may take. */
  shareOfOrganization: number
  /** Limit of one download, and of unpacking one image, in milliseconds. */
  timeoutMs: number
  /** Limit of a small question to a registry, in milliseconds. A registry that cannot be reached is reported after this time, whatever the reason. */
  answerTimeoutMs: number
  /** What the disk of the images must have left for the host. */
  keepFreeBytes: number
  /** Bytes of downloaded layers that are kept for the next image. */
  keptLayersBytes: number
  /** Brought at the same time; the others wait. */
  atOnce: number
  /** Brought or waiting; more are refused. */
  mostWaiting: number
}

const GiB = 1024 ** 3

export const standardLimits: ImageLimits = {
  largestBytes: 20 * GiB,
  mostFiles: 2_000_000,
  filesPerGiB: 200_000,
  shareOfOrganization: 0.5,
  timeoutMs: 30 * 60_000,
  answerTimeoutMs: 30_000,
  keepFreeBytes: 1 * GiB,
  keptLayersBytes: 10 * GiB,
  atOnce: 3,
  mostWaiting: 100,
}

const sizes = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB']

export const asSize = (bytes: number): string => {
  const power = Math.min(sizes.length - 1, Math.floor(Math.log2(Math.max(1, bytes)) / 10))
  return `${Math.round((bytes / 1024 ** power) * 10) / 10} ${sizes[power]}`
}
