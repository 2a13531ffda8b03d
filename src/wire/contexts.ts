// The files that come with a definition: each a tar in the object store, uploaded by the public SDK as if to S3. The gate
// asks control whose credentials a call is signed with (`POST /proxy/object-storage`), and takes it to a runner, which keeps it.

/** Where clients believe their files to be. */
export const contextBucket = 'alcove-contexts'
export const contextRegion = 'us-east-1'

/** What clients call a context: the MD5 of their files, in hex. To us it is a name, and proves nothing. */
export const contextHash = /^[0-9a-f]{32,64}$/

/** Most parts of an upload; their numbers begin at 1. */
export const mostParts = 1000

export type UploadQuestion = { accessKey: string; sessionToken: string }

/** The answer of a 200. 410: they were good once; 401: they never were, or are not any more. */
export type UploadAccess = {
  /** All that may be seen or written with it. */
  organizationId: string
  /** What calls have to be signed with. */
  secret: string
  /** The runner that keeps what is uploaded: `unix:/path` or `http://host:port`. */
  runnerAddress: string
}

/** A context that is whole, as a runner lists it. */
export type StoredContext = { hash: string; bytes: number; etag: string; storedAt: string }

/** Which contexts images are still made from; what a runner may remove is the rest. */
export type ContextsInUse = {
  /** Absent: those of all organizations. */
  organizationId?: string
  inUse: readonly { organizationId: string; hashes: readonly string[] }[]
}
