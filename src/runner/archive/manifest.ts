// The table of contents of an archive. It is written last, so an archive that has a manifest is complete. Control stores the
// manifest's hash, so a changed manifest is detected.
import { createHash } from 'node:crypto'
import { type BaseIdentity, readIdentity } from '../images/base-identity.ts'
import { maxChunkBytes } from './chunk-borders.ts'
import { ArchiveFailed } from './failed.ts'
import { type Owner, ownerOf } from './keys.ts'

/** A piece of the tar stream, stored compressed. Its key contains the hash of its content (`sha256`). */
export type Chunk = { sha256: string; bytes: number; storedBytes: number }

export type Manifest = Owner & {
  archiveId: string
  /** Time at which the archive was made, in ISO 8601. */
  createdAt: string
  /** Length and hash of the whole tar stream, for people with `zstd` and `sha256sum`. Programs use the hashes of the chunks. */
  bytes: number
  sha256: string
  /** Chunks in the order of the tar stream. A chunk may occur several times. */
  chunks: readonly Chunk[]
  /** The base image of the disk. Absent in archives of base images, and in old archives. */
  base?: BaseIdentity
}

const format = 1
/**
 * Limits of a manifest. `maxChunks` is enough for a disk of 1 TiB. `maxStoredBytes` is more than a chunk has, because compression
 * makes some chunks longer.
 */
export const maxChunks = 400_000
export const maxStoredBytes = maxChunkBytes + 64 * 1024
export const maxManifestBytes = 48 * 1024 * 1024

export const hashOf = (content: Uint8Array) => createHash('sha256').update(content).digest('hex')

export const storedBytesOf = ({ chunks }: Pick<Manifest, 'chunks'>): number =>
  new Map(chunks.map(({ sha256, storedBytes }) => [sha256, storedBytes])).values().reduce((sum, each) => sum + each, 0)

export const writeManifest = ({ chunks, ...head }: Manifest): Buffer => {
  const rows = chunks.map(({ sha256, bytes, storedBytes }) => [sha256, bytes, storedBytes])
  return Buffer.from(JSON.stringify({ format, content: 'tar', compression: 'zstd', ...head, chunks: rows }))
}

const isHash = (value: unknown): value is string => typeof value === 'string' && /^[0-9a-f]{64}$/.test(value)
const isWithin = (value: unknown, least: number, most: number): value is number =>
  Number.isSafeInteger(value) && (value as number) >= least && (value as number) <= most

const readChunk = (row: unknown): Chunk | undefined => {
  if (!Array.isArray(row) || row.length !== 3) return undefined
  const [sha256, bytes, storedBytes]: unknown[] = row
  if (!isHash(sha256) || !isWithin(bytes, 1, maxChunkBytes) || !isWithin(storedBytes, 1, maxStoredBytes))
    return undefined
  return { sha256, bytes, storedBytes }
}

const parse = (content: Buffer): unknown => {
  try {
    return JSON.parse(content.toString())
  } catch {
    return undefined
  }
}

/**
 * Parses a manifest. Throws `ArchiveFailed` if the manifest is damaged, belongs to another archive or has an unknown format
 * version.
 */
export const readManifest = (content: Buffer, owner: Owner, archiveId: string): Manifest => {
  const damaged = (what: string) => new ArchiveFailed('damaged', `The archive's table of contents ${what}.`)
  const found = parse(content)
  if (typeof found !== 'object' || found === null || Array.isArray(found)) throw damaged('is damaged')
  const fields = found as Record<string, unknown>
  if (isWithin(fields['format'], format + 1, 1000)) throw damaged('was written by a newer version of Alcove')
  if (fields['format'] !== format || fields['content'] !== 'tar' || fields['compression'] !== 'zstd') {
    throw damaged('is damaged')
  }
  if (fields['sandboxId'] !== owner.sandboxId || fields['image'] !== owner.image || fields['archiveId'] !== archiveId)
    throw damaged('is that of another archive')
  const { createdAt, bytes, sha256, chunks: rows } = fields
  const base = readIdentity(fields['base'])
  if (fields['base'] !== undefined && base === undefined) throw damaged('is damaged')
  const isWhole = typeof createdAt === 'string' && isWithin(bytes, 1, maxChunks * maxChunkBytes) && isHash(sha256)
  if (!isWhole || !Array.isArray(rows) || rows.length > maxChunks) throw damaged('is damaged')
  const chunks = rows.map(readChunk).filter((chunk) => chunk !== undefined)
  const sum = chunks.reduce((total, chunk) => total + chunk.bytes, 0)
  if (chunks.length !== rows.length || sum !== bytes) throw damaged('is damaged')
  return { ...ownerOf(owner), archiveId, createdAt, bytes, sha256, ...(base ? { base } : {}), chunks }
}
