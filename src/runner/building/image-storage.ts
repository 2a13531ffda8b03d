// Computes the disk space that images use on this runner. All numbers are in memory, so every heartbeat can report them.
import type { ImageStorage } from '#src/wire/image-storage.ts'
import type { GivenBack } from '../images/given-back.ts'
import type { ImageStore } from '../images/store.ts'
import type { AllImages } from './all-images.ts'
import type { LineCache } from './line-cache.ts'

export const imageStorageOf = (
  store: Pick<ImageStore, 'stored'>,
  images: Pick<AllImages, 'addedBytes'>,
  lines: Pick<LineCache, 'usage'>,
  givenBack: GivenBack,
): ImageStorage => {
  const { images: files, layers } = store.stored()
  return {
    bytes: { images: files + images.addedBytes(), layers, lines: lines.usage().addedBytes },
    givenBack: givenBack.read(),
  }
}
