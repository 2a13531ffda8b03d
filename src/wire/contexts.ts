// A context has the files that a Dockerfile (a definition) copies into an image. Each context is one tar in the object store.
// Daytona's SDK uploads a context as it would upload to S3. The gate asks control who signed the upload
// (`POST /proxy/object-storage`). The gate then forwards the upload to a runner, which stores it.

/** The S3 bucket and region that clients see. These are only names: the uploads do not go to Amazon S3. */
export const contextBucket = 'alcove-contexts'
export const contextRegion = 'us-east-1'

/** The hash by which clients name a context, in hex. SDKs use the MD5 of the context's files, but the server verifies no hash. */
export const contextHash = /^[0-9a-f]{32,64}$/

/** Maximum number of parts of one upload. Part numbers begin at 1. */
export const mostParts = 1000

export type UploadQuestion = { accessKey: string; sessionToken: string }

/**
 * The body of control's answer 200 to valid credentials of an upload. Expired credentials get a 410, unknown or revoked credentials
 * a 401.
 */
export type UploadAccess = {
  /** The only organization whose contexts the upload's credentials may read and write. */
  organizationId: string
  /** The secret with which calls of the upload must be signed. */
  secret: string
  /** The address of the runner that stores the uploads: `unix:/path` or `http://host:port`. */
  runnerAddress: string
  /**
   * Id of the gate on the machine of the runner at `runnerAddress`. Absent: the gate on control's machine. Any other gate stores
   * uploads with a runner of its own machine, because all runners use one store.
   */
  gateId?: string
}

/** A completely uploaded context, as it stands in a runner's list. */
export type StoredContext = { hash: string; bytes: number; etag: string; storedAt: string }

/** The contexts that control still needs for making images. The runner may remove all other contexts of `organizationId`. */
export type ContextsInUse = {
  /** The organization whose contexts the message is about. Absent: the message is about the contexts of all organizations. */
  organizationId?: string
  inUse: readonly { organizationId: string; hashes: readonly string[] }[]
}
