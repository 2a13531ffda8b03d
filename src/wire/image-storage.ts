// How much disk space images use on a runner, and how much of it the runner has freed.

/**
 * Uses of disk space. `images`: files of images. `layers`: downloaded layers that are kept for later images. `lines`:
 * disks that are kept after lines of a Dockerfile, so that a later build can begin there.
 */
export const imageKinds = ['images', 'layers', 'lines'] as const
export type ImageKind = (typeof imageKinds)[number]

/**
 * Reasons for which a runner frees disk space. `unused`: no image or snapshot needs the files any more. `age`: the
 * files were not used for long. `pressure`: the files exceed their limit, or the disk is nearly full.
 */
export const givenBackReasons = ['unused', 'age', 'pressure'] as const
export type GivenBackReason = (typeof givenBackReasons)[number]

/** Disk space in bytes. `givenBack`: freed since the start of the runner. An absent number means 0. */
export type ImageStorage = {
  bytes: Partial<Record<ImageKind, number>>
  givenBack: Partial<Record<ImageKind, Partial<Record<GivenBackReason, number>>>>
}
