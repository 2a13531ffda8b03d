// A store of objects, named by keys. Objects are small (a chunk, a manifest), so each is held in memory as a whole, with a size
// limit.
import type { StoreAddress } from '#src/kit/store-address.ts'
import { DirectoryStore } from './directory-store.ts'
import { patient } from './patient-store.ts'
import { S3Store } from './s3-store.ts'

export type StoredObject = { key: string; bytes: number }

/** Every method may throw `ArchiveFailed`, or the abort reason of the signal. */
export interface ObjectStore {
  /** Stores an object, replacing any earlier one. Atomic; once this resolves, the object survives a power cut. */
  put(key: string, content: Uint8Array, signal?: AbortSignal): Promise<void>
  /** Reads an object. Undefined if it does not exist. An object of more than `limit` bytes is not read and counts as damaged. */
  get(key: string, limit: number, signal?: AbortSignal): Promise<Buffer | undefined>
  /**
   * Lists all objects whose key begins with the prefix, which must end in a slash. After store errors an object may be listed
   * twice. Listed objects may be removed during the list.
   */
  list(prefix: string, signal?: AbortSignal): AsyncIterable<StoredObject>
  /** Removes an object. No error if it does not exist. */
  remove(key: string, signal?: AbortSignal): Promise<void>
  close(): Promise<void>
}

/** Opens a store without contacting it: a runner can start while its store is down. `keepFreeBytes` applies to a directory. */
export const openStore = (address: StoreAddress, keepFreeBytes = 0): ObjectStore =>
  patient(address.kind === 'directory' ? new DirectoryStore(address.path, keepFreeBytes) : new S3Store(address))
