// Limits for the files that come with definitions. Tests use smaller values.
import { mostParts } from '#src/wire/contexts.ts'

export type ContextLimits = {
  /** Maximum size of one context, as the caller sends it, in bytes. */
  largestBytes: number
  /** Maximum size of all contexts of an organization, as stored (compressed), in bytes. */
  bytesOfOrganization: number
  contextsOfOrganization: number
  partsOfUpload: number
  /** Maximum number of open uploads of an organization. Each may have `partsOfUpload` parts. */
  uploadsOfOrganization: number
  /** Maximum number of open uploads of all organizations together. */
  uploads: number
  /** Maximum number of request bodies that are read at the same time. Each takes about 16 MiB of memory. */
  atOnce: number
  atOnceOfOrganization: number
  /** A request body of which no byte arrives for this many milliseconds is refused. */
  silentMs: number
  /** Maximum time for one body, however steadily its bytes arrive. */
  longestMs: number
  /** A context that no image uses is removed after this time without a request for it. */
  keptMs: number
  /** An upload without data for this long counts as abandoned. Must be longer than `longestMs`. */
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
