// Limits for the files that come with definitions. Tests use smaller values.
import { mostParts } from '#src/wire/contexts.ts'

export type ContextLimits = {
  /** Maximum size in bytes of a context, in the form in which the caller sends it. */
  largestBytes: number
  /** Maximum size in bytes of all contexts of one organization together, compressed. */
  bytesOfOrganization: number
  contextsOfOrganization: number
  partsOfUpload: number
  /**
   * Maximum number of open uploads of one organization: begun, and neither completed nor aborted. Each may have `partsOfUpload`
   * parts.
   */
  uploadsOfOrganization: number
  /** Maximum number of open uploads of all organizations together. */
  uploads: number
  /** Maximum number of request bodies that are read at the same time. Each takes about 16 MiB of memory. */
  atOnce: number
  atOnceOfOrganization: number
  /** If no byte of a request body arrives for this many milliseconds, the request is refused. */
  silentMs: number
  /** Maximum time in milliseconds for one request body, even if its bytes arrive steadily. */
  longestMs: number
  /** A context that no image uses is removed if nobody has requested it for this many milliseconds. */
  keptMs: number
  /** An upload without data for this many milliseconds is abandoned. Must be more than `longestMs`, the maximum for one request. */
  uploadKeptMs: number
}

const GiB = 1024 ** 3

export const standardLimits: ContextLimits = {
  largestBytes: 1 * GiB,
  bytesOfOrganization: 10 * GiB,
  contextsOfOrganization: 1000,
  partsOfUpload: mostParts,
  uploadsOfOrganization: 50,
  uploads: 5000,
  atOnce: 16,
  atOnceOfOrganization: 8,
  silentMs: 60_000,
  longestMs: 30 * 60_000,
  keptMs: 24 * 3_600_000,
  uploadKeptMs: 2 * 3_600_000,
}
