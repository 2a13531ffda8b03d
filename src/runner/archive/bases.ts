// For `src/runner/images`: hashes the files of base images, stores them in the object store and fetches them from there.
import type { BaseTravel } from '../images/base-content.ts'
import { ImageFailed } from '../images/image-failed.ts'
import { hashFiles, storeBase } from './base.ts'
import { ArchiveFailed } from './failed.ts'
import type { ObjectStore } from './store.ts'
import { unpackBase } from './unpack.ts'

/**
 * `isShared`: the object store survives the loss of this host. Then base images must be in the object store too, for restores on
 * other hosts.
 */
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
