// What images take of a runner's disk, and what of it the runner has given back.

/** `images`: files of images. `layers`: downloads kept for later images. `lines`: disks of kept lines of definitions. */
export const imageKinds = ['images', 'layers', 'lines'] as const
export type ImageKind = (typeof imageKinds)[number]

/** `unused`: nothing named it any more. `age`: not used for long. `pressure`: over its bound, or the disk was filling. */
export const givenBackReasons = ['unused', 'age', 'pressure'] as const
export type GivenBackReason = (typeof givenBackReasons)[number]

/** In bytes. `givenBack` counts from the start of the runner; what is absent is 0. */
export type ImageStorage = {
  bytes: Partial<Record<ImageKind, number>>
  givenBack: Partial<Record<ImageKind, Partial<Record<GivenBackReason, number>>>>
}
