// How much of a runner's disk images use, and how much of it the runner has freed.

/**
 * `images`: files of images. `layers`: downloads kept for later images. `lines`: disks kept after lines of Dockerfiles.
 */
export const imageKinds = ['images', 'layers', 'lines'] as const
export type ImageKind = (typeof imageKinds)[number]

/**
 * Why disk space was freed. `unused`: nothing named it any more. `age`: not used for long. `pressure`: above its bound,
 * or the disk was nearly full.
 */
export const givenBackReasons = ['unused', 'age', 'pressure'] as const
export type GivenBackReason = (typeof givenBackReasons)[number]

/** Disk space in bytes. `givenBack` counts from the start of the runner. An absent number is 0. */
export type ImageStorage = {
  bytes: Partial<Record<ImageKind, number>>
  givenBack: Partial<Record<ImageKind, Partial<Record<GivenBackReason, number>>>>
}
