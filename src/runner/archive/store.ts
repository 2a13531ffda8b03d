// A store of objects, which are named by keys. Each object is small, and is read and written as a whole.
import type { StoreAddress } from '#src/kit/store-address.ts'
import { DirectoryStore } from './directory-store.ts'
import { patient } from './patient-store.ts'
import { S3Store } from './s3-store.ts'

export type StoredObject = { key: string; bytes: number }

/** Each method may throw `ArchiveFailed` or, if `signal` is aborted, the reason of the abort. */
export interface ObjectStore {
  /**
   * Stores or replaces an object. If the process is killed, the store has the old or the new object. After the promise
   * resolves, the object survives a power cut.
   */
  put(key: string, content: Uint8Array, signal?: AbortSignal): Promise<void>
  /** Reads an object. Undefined if it does not exist. An object of more than `limit` bytes is not read, and counts as damaged. */
  get(key: string, limit: number, signal?: AbortSignal): Promise<Buffer | undefined>
  /**
   * Lists all objects whose key begins with `prefix`, which must end in a slash. After a retry, an object may be listed twice.
   * The caller may remove listed objects during the list.
   */
  list(prefix: string, signal?: AbortSignal): AsyncIterable<StoredObject>
  /** Removes an object. No error if it does not exist. */
  remove(key: string, signal?: AbortSignal): Promise<void>
  close(): Promise<void>
}

/** Opens a store without contacting it, because a runner must start even if its store is down. */
export const openStore = (address: StoreAddress, keepFreeBytes = 0): ObjectStore =>
  patient(address.kind === 'directory' ? new DirectoryStore(address.path, keepFreeBytes) : new S3Store(address))
