// What bounds the files that come with definitions. Tests make them small.
import { mostParts } from '#src/wire/contexts.ts'

export type ContextLimits = {
  /** Largest context, as it is sent. */
  largestBytes: number
  /** Bytes of all contexts of an organization, as they are stored. */
  bytesOfOrganization: number
  contextsOfOrganization: number
  partsOfUpload: number
  /** That have been begun and not ended, each with as many parts. */
  uploadsOfOrganization: number
  /** Open uploads of all organizations together. */
  uploads: number
  /** Bodies that are taken at the same time; each holds some 16 MiB of memory. */
  atOnce: number
  atOnceOfOrganization: number
  /** Without a byte. */
  silentMs: number
  /** Longest time of one body, however steadily it trickles. */
  longestMs: number
  /** What is not in use goes when nobody has asked for it, or written to it, for so long. */
  keptMs: number
  /** An upload to which nothing has come for so long was left. More than one body takes. */
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
