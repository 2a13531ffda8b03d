// Limits for fetching one image. Settings may change some limits; tests use small limits.

export type ImageLimits = {
  /**
   * Maximum size in bytes of an image. The limit applies separately to the compressed layers and to the unpacked files. A request
   * may set a lower limit.
   */
  largestBytes: number
  mostFiles: number
  /** Maximum number of files per GiB of the image's maximum size. The limit exists because even an empty file takes space. */
  filesPerGiB: number
  /** Share of the file system, from 0 to 1, that all images of one organization may use together. */
  shareOfOrganization: number
  /** Time limit in milliseconds of one download, and of unpacking one image. */
  timeoutMs: number
  /**
   * Time limit in milliseconds of a small request to a registry. A failure to reach a registry is reported only after this time, so
   * that the delay reveals nothing about the network.
   */
  answerTimeoutMs: number
  /** Bytes that images must leave free on their disk for other uses of the host. */
  keepFreeBytes: number
  /** Maximum total bytes of the downloaded layers that this host keeps, so that later images need not download them again. */
  keptLayersBytes: number
  /** Maximum number of images that are fetched at the same time. Further requests are queued. */
  atOnce: number
  /** Maximum number of images that are being fetched or are queued. Further requests are refused. */
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
