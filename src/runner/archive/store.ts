// A store of objects, which are named by keys. Objects are small (a chunk or a manifest), so each is read and written as a
// whole. Their size is limited.
import type { StoreAddress } from '#src/kit/store-address.ts'
import { DirectoryStore } from './directory-store.ts'
import { patient } from './patient-store.ts'
import { S3Store } from './s3-store.ts'

export type StoredObject = { key: string; bytes: number }

/** Each method may throw `ArchiveFailed` or, if `signal` is aborted, the reason of the abort. */
export interface ObjectStore {
  /**
   * Stores an object, and replaces an object with this key if there is one. If the process is killed during that, the object
   * store has either the old or the new object. When the promise resolves, the object survives a power cut.
   */
  put(key: string, content: Uint8Array, signal?: AbortSignal): Promise<void>
  /** Reads an object. Undefined if it does not exist. An object of more than `limit` bytes is not read, and counts as damaged. */
  get(key: string, limit: number, signal?: AbortSignal): Promise<Buffer | undefined>
  /**
   * Lists all objects whose key begins with `prefix`, which must end in a slash. If a request to the object store fails and is
   * retried, an object may be listed twice. The caller may remove listed objects during the list.
   */
  list(prefix: string, signal?: AbortSignal): AsyncIterable<StoredObject>
  /** Removes an object. No error if it does not exist. */
  remove(key: string, signal?: AbortSignal): Promise<void>
  close(): Promise<void>
}

/**
 * Opens a store without contacting it, so that a runner can start while its store is down. `keepFreeBytes` applies only to a
 * store in a directory.
 */
export const openStore = (address: StoreAddress, keepFreeBytes = 0): ObjectStore =>
  patient(address.kind === 'directory' ? new DirectoryStore(address.path, keepFreeBytes) : new S3Store(address))
