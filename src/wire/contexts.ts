// Contexts: the files that come with a definition, each a tar in the object store. The public SDK uploads them as if to S3.
// The gate asks control who signed a call (`POST /proxy/object-storage`) and forwards it to a runner, which stores the tar.

/** The bucket and region that clients see. There is no real S3 store behind them. */
export const contextBucket = 'alcove-contexts'
export const contextRegion = 'us-east-1'

/** The name that clients give a context: the MD5 of their files, in hex. We do not verify it. */
export const contextHash = /^[0-9a-f]{32,64}$/

/** Most parts of an upload. Part numbers begin at 1. */
export const mostParts = 1000

export type UploadQuestion = { accessKey: string; sessionToken: string }

/**
 * The body of a 200: the credentials are valid. A 410 means that they have expired. A 401 means that they are unknown
 * or revoked.
 */
export type UploadAccess = {
  /** The only organization whose contexts the credentials may read and write. */
  organizationId: string
  /** The secret with which calls of the upload must be signed. */
  secret: string
  /** The address of the runner that stores the uploads: `unix:/path` or `http://host:port`. */
  runnerAddress: string
}

/** A completely uploaded context, as a runner lists it. */
export type StoredContext = { hash: string; bytes: number; etag: string; storedAt: string }

/** The contexts that images are still made from. A runner may remove every other context. */
export type ContextsInUse = {
  /** The organization whose contexts these are. Absent: the contexts of all organizations. */
  organizationId?: string
  inUse: readonly { organizationId: string; hashes: readonly string[] }[]
}
