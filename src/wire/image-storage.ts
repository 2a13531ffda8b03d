// How much disk space images use on a runner, and how much disk space the runner has freed.

/**
 * What uses disk space. `images`: files of images. `layers`: downloaded layers, kept for later images. `lines`: disks after one
 * line of a Dockerfile, kept for later builds.
 */
export const imageKinds = ['images', 'layers', 'lines'] as const
export type ImageKind = (typeof imageKinds)[number]

/**
 * Why a runner frees this disk space. `unused`: no image or snapshot needs the files. `age`: the files were not used for a long
 * time. `pressure`: the files exceed their limit, or the disk is nearly full.
 */
export const givenBackReasons = ['unused', 'age', 'pressure'] as const
export type GivenBackReason = (typeof givenBackReasons)[number]

/**
 * Disk space of images in bytes. `bytes`: in use now. `givenBack`: freed since the start of the runner, by reason. An absent number
 * means 0.
 */
export type ImageStorage = {
  bytes: Partial<Record<ImageKind, number>>
  givenBack: Partial<Record<ImageKind, Partial<Record<GivenBackReason, number>>>>
}
