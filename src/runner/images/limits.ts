// What bounds the bringing of one image. Settings may change them; tests make them small.

export type ImageLimits = {
  /** Compressed or not; what is asked for may be less. */
  largestBytes: number
  mostFiles: number
  /** For each GiB that the image may have. A file without contents takes room, too. */
  filesPerGiB: number
  /** Of the file system that images lie on, for all images of one organization. */
  shareOfOrganization: number
  /** Of a download, and of unpacking. */
  timeoutMs: number
  /** Of asking a registry something small. A registry that cannot be reached is told after as long, whatever the reason. */
  answerTimeoutMs: number
  /** What the disk of the images must have left for the host. */
  keepFreeBytes: number
  /** Of downloaded layers that are kept for the next image. */
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
