// How much disk space images use on a runner, and how much of it the runner has freed.

/**
 * What uses disk space. `images`: files of images. `layers`: downloaded layers for later images. `lines`: disks after a line of a
 * Dockerfile, for later builds.
 */
export const imageKinds = ['images', 'layers', 'lines'] as const
export type ImageKind = (typeof imageKinds)[number]

/**
 * Why a runner frees disk space. `unused`: no image or snapshot needs the files. `age`: nothing has used them for a long time.
 * `pressure`: they exceed their limit, or the disk is nearly full.
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
