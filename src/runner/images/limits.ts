// Limits for fetching one image. Settings may change them; tests use small ones.

export type ImageLimits = {
  /** Maximum size of an image, compressed or not, in bytes. A request may set a lower limit. */
  largestBytes: number
  mostFiles: number
  /** Maximum number of files for each GiB that the image may have. Even an empty file takes space. */
  filesPerGiB: number
  /** Share of the images' file system that all images of one organization may use together. */
  shareOfOrganization: number
  /** Time limit of one download, and of unpacking one image, in milliseconds. */
  timeoutMs: number
  /**
   * Time limit of a small request to a registry, in milliseconds. For every cause, an unreachable registry is reported only after
   * this time, so that the time reveals nothing about the network.
   */
  answerTimeoutMs: number
  /** Space that images leave free on their disk for the host. */
  keepFreeBytes: number
  /** Bytes of downloaded layers that are kept for later images. */
  keptLayersBytes: number
  /** Maximum number of images that are fetched at the same time. Further requests wait. */
  atOnce: number
  /** Maximum number of images that are being fetched or waiting. Further requests are refused. */
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
