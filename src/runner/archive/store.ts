// A place for objects, named by keys. Objects are small (a chunk, a manifest), so each is whole in memory, with a bound.
import type { StoreAddress } from '#src/kit/store-address.ts'
import { DirectoryStore } from './directory-store.ts'
import { patient } from './patient-store.ts'
import { S3Store } from './s3-store.ts'

export type StoredObject = { key: string; bytes: number }

/** Every method may throw `ArchiveFailed`, or the reason of the signal. */
export interface ObjectStore {
  /** All or nothing: once this resolves, the object is there, also after a power cut. What was there before is replaced. */
  put(key: string, content: Uint8Array, signal?: AbortSignal): Promise<void>
  /** Undefined if it is not there; an object of more than `limit` bytes is damaged, and not read. */
  get(key: string, limit: number, signal?: AbortSignal): Promise<Buffer | undefined>
  /**
   * Everything whose key begins with the prefix, which ends in a slash; after trouble with the store perhaps twice.
   * Removing what was listed does not disturb it.
   */
  list(prefix: string, signal?: AbortSignal): AsyncIterable<StoredObject>
  /** Fine when it is gone already. */
  remove(key: string, signal?: AbortSignal): Promise<void>
  close(): Promise<void>
}

/** Nothing is asked of the store yet: a runner starts while its store is down. `keepFreeBytes` is for a directory. */
export const openStore = (address: StoreAddress, keepFreeBytes = 0): ObjectStore =>
  patient(address.kind === 'directory' ? new DirectoryStore(address.path, keepFreeBytes) : new S3Store(address))
