// How much disk space images use on a runner, and how much of it the runner has freed.

/**
 * What the disk space is used for. `images`: files of images. `layers`: downloaded layers that are kept for later
 * images. `lines`: disks of builds, as they were after a line of a Dockerfile, so that a later build can continue after
 * that line.
 */
export const imageKinds = ['images', 'layers', 'lines'] as const
export type ImageKind = (typeof imageKinds)[number]

/**
 * Reasons for which a runner frees disk space. `unused`: no image or snapshot needs the files any more. `age`: the
 * files have not been used for a long time. `pressure`: the files exceed their limit, or the disk is nearly full.
 */
export const givenBackReasons = ['unused', 'age', 'pressure'] as const
export type GivenBackReason = (typeof givenBackReasons)[number]

/**
 * Disk space in bytes. `bytes`: in use now. `givenBack`: freed since the start of the runner, by reason. An absent
 * number means 0.
 */
export type ImageStorage = {
  bytes: Partial<Record<ImageKind, number>>
  givenBack: Partial<Record<ImageKind, Partial<Record<GivenBackReason, number>>>>
}
