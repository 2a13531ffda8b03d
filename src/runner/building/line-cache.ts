// The cache of lines. A cached line is a copy of a build's disk after a line of a definition has run. A later build continues
// from the last line that has not changed.
//
// A cached line is a template, whose name contains the organization and the cache key. It gets this name only when it is
// complete and synced, so no other record is needed.
//
// Only builds of that organization use the line. Lines are evicted when they are too old or too many, and when the disks of
// sandboxes need the space.
import { createHash } from 'node:crypto'
import type { Logger } from '#src/kit/log.ts'
import { FairQueue } from '#src/kit/queue.ts'
import type { Host } from '../host.ts'
import type { GivenBack } from '../images/given-back.ts'
import type { ImageStore } from '../images/store.ts'
import { LineAccount } from './line-account.ts'

export type CacheHost = Pick<
  Host,
  | 'snapshot'
  | 'templates'
  | 'removeTemplate'
  | 'basesInUse'
  | 'lastUseOfTemplate'
  | 'markTemplateUsed'
  | 'room'
  | 'capabilities'
>
type Bases = Pick<ImageStore, 'rootfsOf' | 'remove' | 'listBelowLines' | 'keepBelowLines'>

export type LineLimits = {
  most: number
  mostOfOrganization: number
  /** Maximum share of the storage pool, from 0 to 1, for all cached lines and their base images together. */
  share: number
  shareOfOrganization: number
  /** Lines are evicted until this share of the pool (0 to 1) or `freeBytes` bytes are free, whichever is less. */
  freeShare: number
  freeBytes: number
  keptMs: number
}

const day = 24 * 3600 * 1000

export const standardLineLimits: LineLimits = {
  most: 300,
  mostOfOrganization: 100,
  share: 0.2,
  shareOfOrganization: 0.1,
  freeShare: 0.1,
  freeBytes: 10 * 1024 ** 3,
  keptMs: 14 * day,
}

export type CachedLine = { name: string }

type Line = CachedLine & {
  /** Hash of the organization's id. */
  owner: string
  key: string
  /** Cache key of the cached line that comes before this one in its build. */
  before: string
  base: string
  usedAt: number
  /** Number of running builds that use this cached line. It is not evicted while a build uses it. */
  holds: number
}

type ToKeep = {
  organizationId: string
  key: string
  before: string | undefined
  sandboxId: string
  /** The base image of the sandbox's disk (`image`), and text that identifies the image's files (`files`). */
  image: string
  files: string
  /** Ends the wait for other downloads and builds. The line is then not cached. */
  signal: AbortSignal
}

type LineCacheParts = {
  host: CacheHost
  bases: Bases
  log: Logger
  /** Counts the bytes of evicted cached lines, by the reason of the eviction. */
  givenBack?: GivenBack
  limits?: LineLimits
  now?: () => number
}

const none = 'none'
const shape = /^line\.([0-9a-f]{16})\.([0-9a-f]{32})\.([0-9a-f]{32}|none)$/

/** Returns whether a template with this name is a cached line. Any other template is an image. */
export const isLineName = (name: string): boolean => shape.test(name)

const shortHash = (length: number, ...parts: string[]) =>
  createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, length)

const ownerOf = (organizationId: string) => shortHash(16, organizationId)

const placeOf = ({ owner, key }: Pick<Line, 'owner' | 'key'>) => `${owner}.${key}`

const relieveSeconds = 10
const sweepEveryMs = 3600 * 1000

export class LineCache {
  readonly #host: CacheHost
  readonly #bases: Bases
  readonly #log: Logger
  readonly #limits: LineLimits
  readonly #now: () => number
  readonly #givenBack: GivenBack | undefined
  /** All cached lines, by owner and key. */
  readonly #lines = new Map<string, Line>()
  /** Owner and cache key of each line that is being cached or removed at this moment. */
  readonly #busy = new Set<string>()
  /** Runs one task at a time, so that no base image is removed while it is being recorded. */
  readonly #oneBase = new FairQueue({ atOnce: 1 })
  readonly #comingBases = new Map<string, number>()
  /** Upper estimate of the bytes that cached lines and their base images use now. Lines may share data on the disk. */
  #bytes = 0
  /** Upper estimate of the bytes that cached lines add to their base images now. */
  #addedToImages = 0
  #sweeping: Promise<void> | undefined
  #mustSweep = false
  #sweptAt = 0

  private constructor({ host, bases, log, givenBack, limits = standardLineLimits, now = Date.now }: LineCacheParts) {
    this.#givenBack = givenBack
    this.#host = host
    this.#bases = bases
    this.#log = log
    this.#limits = limits
    this.#now = now
  }

  /** Opens the cache: reads which cached lines exist, and removes those whose base image is missing. */
  static async open(parts: LineCacheParts): Promise<LineCache> {
    const cache = new LineCache(parts)
    const { host, bases } = parts
    for (const { image: name, base } of await host.templates()) {
      const [, owner, key, before] = shape.exec(name) ?? []
      if (owner === undefined || key === undefined || before === undefined) continue
      const isDouble = cache.#find(owner, key) !== undefined
      if (isDouble || bases.rootfsOf(base) === undefined) await host.removeTemplate(name)
      else cache.#add({ name, owner, key, before, base, usedAt: await host.lastUseOfTemplate(name), holds: 0 })
    }
    await cache.sweep()
    return cache
  }

  /** Whether lines are cached on this host: only on btrfs, because elsewhere a copy of a disk takes time and space. */
  get isUseful(): boolean {
    return this.#host.capabilities.hardDiskLimit
  }

  /**
   * Returns an upper estimate of the space that cached lines use now. `bytes` includes their base images, `addedBytes` does not.
   */
  usage(): { lines: number; bytes: number; addedBytes: number } {
    return { lines: this.#lines.size, bytes: this.#bytes, addedBytes: this.#addedToImages }
  }

  has(organizationId: string, key: string): boolean {
    return this.#find(ownerOf(organizationId), key) !== undefined
  }

  /** Finds a cached line, and protects it from eviction until the caller releases it. */
  async hold(organizationId: string, key: string): Promise<CachedLine | undefined> {
    const found = this.#find(ownerOf(organizationId), key)
    if (found === undefined) return undefined
    found.holds += 1
    await this.#use(found)
    return found
  }

  release({ name }: CachedLine): void {
    for (const line of this.#lines.values()) if (line.name === name && line.holds > 0) line.holds -= 1
  }

  /**
   * Whether a cached line comes directly after the line with this key, or after a base image if `key` is undefined. If not, a
   * build need not look for its next line in the cache.
   */
  hasAfter(organizationId: string, key: string | undefined): boolean {
    const owner = ownerOf(organizationId)
    return [...this.#lines.values()].some((line) => line.owner === owner && line.before === (key ?? none))
  }

  /** Caches the disk of a sandbox as it is now. Best effort: if that fails, the build continues. */
  async keep(wanted: ToKeep): Promise<boolean> {
    const { organizationId, key, before = none, sandboxId, image, files, signal } = wanted
    const owner = ownerOf(organizationId)
    const name = `line.${owner}.${key}.${before}`
    const place = placeOf({ owner, key })
    if (this.#lines.has(place) || this.#busy.has(place)) return true
    const base = `line-base.${shortHash(32, organizationId, files)}`
    this.#busy.add(place)
    this.#comingBases.set(base, (this.#comingBases.get(base) ?? 0) + 1)
    try {
      if ((await this.#missingBytes()) > 0) return false
      await this.#oneBase.run(() => this.#bases.keepBelowLines(base, image, signal), { signal })
      await this.#host.snapshot(sandboxId, name, base)
      const line = { name, owner, key, before, base, usedAt: this.#now(), holds: 0 }
      this.#add(line)
      await this.#use(line)
      return true
    } catch (err) {
      if (!signal.aborted) this.#log.warn({ err, name }, 'a line of a definition could not be kept')
      return false
    } finally {
      this.#busy.delete(place)
      const others = (this.#comingBases.get(base) ?? 1) - 1
      if (others === 0) this.#comingBases.delete(base)
      else this.#comingBases.set(base, others)
      void this.sweep()
    }
  }

  /** Evicts cached lines if the pool has too little space for the disks of sandboxes. Must be called every few seconds. */
  async relieve(): Promise<void> {
    const isDue = this.#now() - this.#sweptAt > sweepEveryMs
    if (this.#lines.size > 0 && (isDue || (await this.#missingBytes()) > 0)) await this.sweep()
  }

  static readonly relieveSeconds = relieveSeconds

  /** Evicts the cached lines that exceed the limits. Never throws. */
  sweep(): Promise<void> {
    this.#mustSweep = true
    this.#sweeping ??= this.#sweepWhileAsked()
    return this.#sweeping
  }

  async #sweepWhileAsked(): Promise<void> {
    while (this.#mustSweep) {
      this.#mustSweep = false
      this.#sweptAt = this.#now()
      try {
        await this.#sweepLines()
        await this.#sweepBases()
      } catch (err) {
        this.#log.warn({ err }, 'cached lines of Dockerfiles could not be swept')
      }
    }
    // No `await` may come between the last check of `#mustSweep` and this line. A call of `sweep` could otherwise be missed.
    this.#sweeping = undefined
  }

  #add(line: Line): void {
    this.#lines.set(placeOf(line), line)
  }

  #find(owner: string, key: string): Line | undefined {
    return this.#lines.get(placeOf({ owner, key }))
  }

  /** Returns the cached line and all cached lines before it in its build, the nearest first. */
  #chain(line: Line): Line[] {
    const chain: Line[] = []
    for (let at: Line | undefined = line; at && !chain.includes(at); at = this.#find(at.owner, at.before))
      chain.push(at)
    return chain
  }

  async #use(line: Line): Promise<void> {
    const usedAt = this.#now()
    for (const each of this.#chain(line)) {
      each.usedAt = usedAt
      await this.#host.markTemplateUsed(each.name).catch(() => {})
    }
  }

  /** Returns how many bytes must be freed for the disks of sandboxes. Negative if more than enough is free. */
  async #missingBytes(): Promise<number> {
    const { freeBytes, wholeBytes } = await this.#host.room()
    return Math.min(this.#limits.freeBytes, wholeBytes * this.#limits.freeShare) - freeBytes
  }

  /**
   * Returns the bytes of each cached line, without its base image. Shared data counts for each line, because the kernel does
   * not say how much is shared.
   */
  async #sizes(): Promise<Map<Line, number>> {
    const templates = await this.#host.templates()
    const sizes = new Map(templates.map(({ image, sizeBytes = 0 }) => [image, sizeBytes]))
    return new Map([...this.#lines.values()].map((line) => [line, sizes.get(line.name) ?? 0]))
  }

  async #sweepLines(): Promise<void> {
    if (this.#lines.size === 0) {
      this.#bytes = 0
      this.#addedToImages = 0
      return
    }
    const { most, mostOfOrganization, share, shareOfOrganization, keptMs } = this.#limits
    const { wholeBytes } = await this.#host.room()
    const sizes = await this.#sizes()
    let missing = await this.#missingBytes()
    const all = new LineAccount(this.#baseSizes())
    const owners = new Map<string, LineAccount>()
    for (const [line, bytes] of sizes) {
      all.add(line, bytes)
      const own = owners.get(line.owner) ?? new LineAccount(this.#baseSizes())
      owners.set(line.owner, own)
      own.add(line, bytes)
    }
    for (const line of this.#inOrderOfEviction()) {
      const own = owners.get(line.owner) as LineAccount
      const isOld = this.#now() - line.usedAt > keptMs
      const isOver =
        isOld ||
        missing > 0 ||
        all.isOver(most, share * wholeBytes) ||
        own.isOver(mostOfOrganization, shareOfOrganization * wholeBytes)
      if (!isOver || line.holds > 0) continue
      const place = placeOf(line)
      this.#lines.delete(place)
      this.#busy.add(place)
      await this.#host.removeTemplate(line.name).finally(() => this.#busy.delete(place))
      const bytes = sizes.get(line) ?? 0
      sizes.delete(line)
      this.#givenBack?.add('lines', isOld ? 'age' : 'pressure', bytes)
      // The eviction may free less than `bytes`, because data that other lines share stays. The next call of `relieve` then evicts
      // more lines.
      missing -= bytes
      all.remove(line, bytes)
      own.remove(line, bytes)
    }
    this.#bytes = all.bytes
    this.#addedToImages = [...sizes.values()].reduce((sum, bytes) => sum + bytes, 0)
  }

  /** Returns the lines in the order of their eviction: the least recently used first, and in one build the later line first. */
  #inOrderOfEviction(): Line[] {
    const depths = new Map([...this.#lines.values()].map((line) => [line, this.#chain(line).length]))
    const depth = (line: Line) => depths.get(line) ?? 0
    return [...depths.keys()].sort((a, b) => a.usedAt - b.usedAt || depth(b) - depth(a))
  }

  #baseSizes(): ReadonlyMap<string, number> {
    return new Map(this.#bases.listBelowLines().map(({ image, sizeBytes }) => [image, sizeBytes]))
  }

  async #sweepBases(): Promise<void> {
    const isNeeded = (base: string) =>
      this.#comingBases.has(base) || [...this.#lines.values()].some((line) => line.base === base)
    const unneeded = this.#bases.listBelowLines().filter(({ image }) => !isNeeded(image))
    if (unneeded.length === 0) return
    const inUse = await this.#host.basesInUse()
    for (const { image } of unneeded)
      await this.#oneBase.run(async () => {
        if (!inUse.has(image) && !isNeeded(image)) await this.#bases.remove(image)
      })
  }
}
