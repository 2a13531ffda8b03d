// Stores the files that come with definitions ("contexts") in the object store. A context is stored as chunks and a table, which
// lists the chunks. The table is written last. A context without a table is incomplete, and a sweep removes it. A complete context
// never changes.
import { createHash, type Hash, randomBytes } from 'node:crypto'
import { Problem } from '#src/problems.ts'
import type { StoredContext } from '#src/wire/contexts.ts'
import { cutIntoChunks } from '../archive/chunk-borders.ts'
import { contentsOf, fetchChunk, keepChunk } from '../archive/chunks.ts'
import { ArchiveFailed } from '../archive/failed.ts'
import type { Chunk } from '../archive/manifest.ts'
import type { ObjectStore } from '../archive/store.ts'
import {
  allOf,
  begunKey,
  type ContextName,
  chunksOf,
  isContextName,
  isUploadId,
  nameOf,
  partKey,
  partsOf,
  tableKey,
  uploadKey,
} from './keys.ts'
import { type ContextLimits, standardLimits } from './limits.ts'
import { OpenUploads } from './open-uploads.ts'
import { largestTable, type Part, readMoment, readPart, readTable, type Table, written } from './table.ts'
import { Taking } from './taking.ts'

export type Body = AsyncIterable<Buffer>

/** A part of an upload, as the caller names it when completing the upload. */
export type NamedPart = { number: number; etag: string }

const seenEveryMs = 3_600_000
const uploadSeenEveryMs = 600_000
const usageKeptMs = 10_000

export class ContextStore {
  readonly store: ObjectStore
  readonly limits: ContextLimits
  readonly now: () => number
  readonly #taking: Taking
  readonly #open: OpenUploads
  /** Bytes and hashes of each organization's contexts in the object store. Cached for `usageKeptMs` milliseconds. */
  readonly #usage = new Map<string, { bytes: number; hashes: Set<string>; until: number }>()

  constructor(store: ObjectStore, { limits = standardLimits, now = Date.now } = {}) {
    this.store = store
    this.limits = limits
    this.now = now
    this.#taking = new Taking(limits)
    this.#open = new OpenUploads(limits, now)
  }

  async find(name: ContextName): Promise<Table | undefined> {
    if (!isContextName(name)) return undefined
    return readTable(await this.store.get(tableKey(name), largestTable))
  }

  /**
   * Lists the complete contexts whose hash begins with `beginning`. Each listed context counts as used now, so it stays for about
   * `keptMs` more.
   */
  async list(organizationId: string, beginning: string): Promise<StoredContext[]> {
    const found: StoredContext[] = []
    for (const hash of await this.#hashesOf(organizationId, beginning)) {
      const name = { organizationId, hash }
      const table = await this.find(name)
      if (table === undefined) continue
      const { bytes, etag, storedAt, seenAt } = table
      if (this.now() - seenAt > seenEveryMs)
        await this.store.put(tableKey(name), written({ ...table, seenAt: this.now() }))
      found.push({ hash, bytes, etag, storedAt: new Date(storedAt).toISOString() })
    }
    return found
  }

  async #hashesOf(organizationId: string, beginning: string): Promise<string[]> {
    // Most callers pass the whole hash of one context, for which no list is needed.
    if (isContextName({ organizationId, hash: beginning })) return [beginning]
    const { hashes } = await this.#usageOf(organizationId)
    return [...hashes].filter((hash) => hash.startsWith(beginning)).sort()
  }

  /** Stores a context that the caller sends as one request body. */
  async put(name: ContextName, body: Body): Promise<StoredContext> {
    return await this.#taking.run(name, body, async (pieces) => {
      const known = await this.find(name)
      if (known === undefined) await this.#begin(name)
      const part = await this.#keep(name, pieces, known)
      return this.#asStored(name, known ?? (await this.#finish(name, part)))
    })
  }

  async beginUpload(name: ContextName): Promise<string> {
    const id = randomBytes(16).toString('hex')
    this.#open.begin(name, id)
    try {
      await this.#begin(name)
      await this.store.put(uploadKey(name, id), written({ at: this.now() }))
    } catch (error) {
      this.#open.end(name, id)
      throw error
    }
    return id
  }

  async putPart(name: ContextName, uploadId: string, number: number, body: Body): Promise<Part> {
    if (!(number >= 1 && number <= this.limits.partsOfUpload))
      throw new Problem('bad_request', `partNumber must be from 1 to ${this.limits.partsOfUpload}.`)
    await this.#getUpload(name, uploadId)
    return await this.#taking.run(name, body, async (pieces) => {
      const part = await this.#keep(name, pieces)
      await this.store.put(partKey(name, uploadId, number), written(part))
      return part
    })
  }

  async complete(name: ContextName, uploadId: string, named: readonly NamedPart[]): Promise<StoredContext> {
    const known = await this.find(name)
    if (known !== undefined) {
      await this.abort(name, uploadId)
      return this.#asStored(name, known)
    }
    await this.#getUpload(name, uploadId)
    const isInOrder = named.every(({ number }, at) => at === 0 || number > named[at - 1]!.number)
    if (named.length === 0 || named.length > this.limits.partsOfUpload || !isInOrder)
      throw new Problem(
        'bad_request',
        `List 1 to ${this.limits.partsOfUpload} parts, each only once, sorted by part number.`,
      )
    const parts: Part[] = []
    for (const { number, etag } of named) {
      const part = readPart(await this.store.get(partKey(name, uploadId, number), largestTable))
      if (part?.etag !== etag) throw new Problem('bad_request', `The upload has no part ${number} with this ETag.`)
      parts.push(part)
    }
    const bytes = parts.reduce((sum, part) => sum + part.bytes, 0)
    this.#checkSize(bytes)
    const etag = nameOfContent(parts.reduce((hash, part) => hash.update(part.etag), createHash('sha256')))
    const table = await this.#finish(name, { bytes, etag, chunks: parts.flatMap(({ chunks }) => chunks) })
    await this.abort(name, uploadId)
    return this.#asStored(name, table)
  }

  /** Removes the parts of an upload. No error if the upload is already completed or aborted. */
  async abort(name: ContextName, uploadId: string): Promise<void> {
    if (!isUploadId(uploadId)) throw noUpload()
    for await (const { key } of this.store.list(partsOf(name, uploadId))) await this.store.remove(key)
    this.#open.end(name, uploadId)
  }

  /** Returns whether an upload is open and has received data recently. False if the upload is completed or aborted. */
  async isOpen(name: ContextName, uploadId: string): Promise<boolean> {
    const at = await this.#findUpload(name, uploadId)
    return at !== undefined && this.now() - at < this.limits.uploadKeptMs
  }

  /**
   * Reads a context as the caller has sent it. If a chunk is missing or damaged, removes the context's list of chunks (`Table`).
   * Then the caller can upload the context again.
   */
  async *read(name: ContextName, { chunks }: Table, signal?: AbortSignal): AsyncGenerator<Buffer> {
    try {
      yield* contentsOf(this.#stored(name, chunks, signal), chunks)
    } catch (error) {
      if (error instanceof ArchiveFailed && (error.why === 'missing' || error.why === 'damaged'))
        await this.store.remove(tableKey(name))
      throw error
    }
  }

  async *#stored(name: ContextName, chunks: Table['chunks'], signal?: AbortSignal): AsyncGenerator<Buffer> {
    for (const chunk of chunks) yield await fetchChunk(this.store, chunksOf(name), chunk, signal)
  }

  isTaking(name: ContextName): boolean {
    return this.#taking.isTaking(name)
  }

  /** Returns when the upload was last used, accurate to `uploadSeenEveryMs`. Undefined if there is no such upload. */
  async #findUpload(name: ContextName, uploadId: string): Promise<number | undefined> {
    if (!isUploadId(uploadId)) return undefined
    return readMoment(await this.store.get(uploadKey(name, uploadId), largestTable))?.at
  }

  /** Records that an upload is in use, so that it does not count as abandoned. Throws if there is no such upload. */
  async #getUpload(name: ContextName, uploadId: string): Promise<void> {
    const at = await this.#findUpload(name, uploadId)
    if (at === undefined) throw noUpload()
    this.#open.hear(name, uploadId)
    if (this.now() - at > uploadSeenEveryMs)
      await this.store.put(uploadKey(name, uploadId), written({ at: this.now() }))
  }

  async #begin(name: ContextName): Promise<void> {
    const { hashes, bytes } = await this.#usageOf(name.organizationId)
    const { bytesOfOrganization, contextsOfOrganization } = this.limits
    if (bytes >= bytesOfOrganization || (hashes.size >= contextsOfOrganization && !hashes.has(name.hash)))
      throw new Problem(
        'too_large',
        'The organization has no room for more uploaded files. Files that no image uses are removed after a day.',
      )
    hashes.add(name.hash)
    await this.store.put(begunKey(name), written({ at: this.now() }))
  }

  /**
   * Stores a whole context, or a part of one. `known`: the table of a context that is already stored. The pieces are then only
   * hashed.
   */
  async #keep(name: ContextName, pieces: Body, known?: Table): Promise<Part> {
    const hash = createHash('sha256')
    const chunks: Chunk[] = []
    let bytes = 0
    const usage = await this.#usageOf(name.organizationId)
    const counted = async function* (this: ContextStore) {
      for await (const piece of pieces) {
        bytes += piece.length
        this.#checkSize(bytes)
        hash.update(piece)
        yield piece
      }
    }
    for await (const content of cutIntoChunks(counted.call(this))) {
      if (known !== undefined) continue
      if (usage.bytes >= this.limits.bytesOfOrganization)
        throw new Problem('too_large', 'The organization has no room for more uploaded files.')
      const chunk = await keepChunk(this.store, chunksOf(name), content)
      usage.bytes += chunk.storedBytes
      chunks.push(chunk)
    }
    return { bytes, etag: nameOfContent(hash), chunks }
  }

  async #finish(name: ContextName, part: Part): Promise<Table> {
    const now = this.now()
    const table = { ...part, storedAt: now, seenAt: now }
    await this.store.put(tableKey(name), written(table))
    return table
  }

  #asStored({ hash }: ContextName, { bytes, etag, storedAt }: Table): StoredContext {
    return { hash, bytes, etag, storedAt: new Date(storedAt).toISOString() }
  }

  #checkSize(bytes: number) {
    if (bytes > this.limits.largestBytes)
      throw new Problem('too_large', `The files of a definition may have ${this.limits.largestBytes} bytes at most.`)
  }

  async #usageOf(organizationId: string) {
    const known = this.#usage.get(organizationId)
    if (known !== undefined && known.until > this.now()) return known
    const usage = { bytes: 0, hashes: new Set<string>(), until: this.now() + usageKeptMs }
    for await (const { key, bytes } of this.store.list(allOf(organizationId))) {
      const name = nameOf(key)
      if (name === undefined) continue
      usage.bytes += bytes
      usage.hashes.add(name.hash)
    }
    this.#usage.delete(organizationId)
    this.#usage.set(organizationId, usage)
    // The cache has at most 1000 organizations. If it has more, the entries that were added first are removed.
    for (const [id] of this.#usage) if (this.#usage.size > 1000) this.#usage.delete(id)
    return usage
  }
}

const nameOfContent = (hash: Hash): string => hash.digest('hex').slice(0, 32)
const noUpload = () => new Problem('not_found', 'There is no such upload.')
