// Hashes the files of base images, puts them into the archive store and fetches them from there, for `src/runner/images`.
import type { BaseTravel } from '../images/base-content.ts'
import { ImageFailed } from '../images/image-failed.ts'
import { hashFiles, storeBase } from './base.ts'
import { ArchiveFailed } from './failed.ts'
import type { ObjectStore } from './store.ts'
import { unpackBase } from './unpack.ts'

/** `isShared`: the store is still there if this host is lost. So each disk copy in it needs its base image in it too. */
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
