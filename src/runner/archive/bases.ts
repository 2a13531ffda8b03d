// The archive store, as the room of images uses it for the files of base images.
import type { BaseTravel } from '../images/base-content.ts'
import { ImageFailed } from '../images/image-failed.ts'
import { hashFiles, storeBase } from './base.ts'
import { ArchiveFailed } from './failed.ts'
import type { ObjectStore } from './store.ts'
import { unpackBase } from './unpack.ts'

/** `isShared`: the store can outlive this host, so copies in it need their bases there. */
export const travelThrough = (store: ObjectStore, launcher: string, isShared: boolean): BaseTravel => ({
  hash: (rootfs) => hashFiles(rootfs),
  keep: isShared ? (content, rootfs) => storeBase({ store, content, rootfs }) : undefined,
  bring: async (request) => {
    try {
      await unpackBase({ store, launcher, ...request })
    } catch (error) {
      if (!(error instanceof ArchiveFailed)) throw error
      throw new ImageFailed(error.why === 'missing' ? 'not-found' : 'failed', error.message, { cause: error })
    }
  },
})
