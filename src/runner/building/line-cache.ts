// Cached lines: disks as they were after a line of a definition. A build continues from the last line that has not changed. A
// cached line is a template over its own base image. The template's name holds the organization and the key, so no other record
// is needed: a template gets its name once it is complete and synced.
//
// Cached lines only save time. Only builds of the same organization use them. They are evicted by age, at their limits, and when
// the disks of sandboxes need the space.
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
  /** Shares of the storage pool that cached lines and their base images may take: in total, and per organization. */
  share: number
  shareOfOrganization: number
  /** Lines are evicted until the pool has this share of its size free, or `freeBytes` if that is less. */
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

export type KeptLine = { name: string }

type Line = KeptLine & {
  /** Hash of the organization's id. */
  owner: string
  key: string
  /** Key of the cached line that this line builds on. */
  before: string
  base: string
  usedAt: number
  /** Number of running builds that use this line. */
  holds: number
}

type ToKeep = {
  organizationId: string
  key: string
  before: string | undefined
  sandboxId: string
  /** The base image of the sandbox's disk, and the name of that image's files. */
  image: string
  files: string
}

type LineCacheParts = {
  host: CacheHost
  bases: Bases
  log: Logger
  /** Counts evicted bytes by reason. */
  givenBack?: GivenBack
  limits?: LineLimits
  now?: () => number
}

const none = 'none'
const shape = /^line\.([0-9a-f]{16})\.([0-9a-f]{32})\.([0-9a-f]{32}|none)$/

/** Whether a template name is the name of a cached line rather than of an image. */
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
  /** Cached lines by owner and key. */
  readonly #lines = new Map<string, Line>()
  /** Owner and key of each line that is being cached or removed right now. */
  readonly #busy = new Set<string>()
  /** Base images are kept and removed one at a time. */
  readonly #oneBase = new FairQueue({ atOnce: 1 })
  readonly #comingBases = new Map<string, number>()
  /** Number of bytes of the cached lines, including the images below them. */
  #bytes = 0
  /** Number of bytes of the cached lines without the images below them. */
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

  /** Reads the cached lines, and removes lines whose base image is missing. */
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

  /** Lines are cached only on btrfs, because only there is a copy of a disk cheap. */
  get isUseful(): boolean {
    return this.#host.capabilities.hardDiskLimit
  }

  /** Upper bounds. `bytes` includes the images below the lines, `addedBytes` does not. */
  usage(): { lines: number; bytes: number; addedBytes: number } {
    return { lines: this.#lines.size, bytes: this.#bytes, addedBytes: this.#addedToImages }
  }

  has(organizationId: string, key: string): boolean {
    return this.#find(ownerOf(organizationId), key) !== undefined
  }

  /** Finds a cached line. The line is not evicted until the caller releases it. */
  async hold(organizationId: string, key: string): Promise<KeptLine | undefined> {
    const found = this.#find(ownerOf(organizationId), key)
    if (found === undefined) return undefined
    found.holds += 1
    await this.#use(found)
    return found
  }

  release({ name }: KeptLine): void {
    for (const line of this.#lines.values()) if (line.name === name && line.holds > 0) line.holds -= 1
  }

  /** Whether a cached line builds directly on the line with this key. Without a key: on the base image. */
  hasAfter(organizationId: string, key: string | undefined): boolean {
    const owner = ownerOf(organizationId)
    return [...this.#lines.values()].some((line) => line.owner === owner && line.before === (key ?? none))
  }

  /** Caches the disk of a sandbox as it is now. Best effort: a failure of this function does not fail the build. */
  async keep(wanted: ToKeep): Promise<boolean> {
    const { organizationId, key, before = none, sandboxId, image, files } = wanted
    const owner = ownerOf(organizationId)
    const name = `line.${owner}.${key}.${before}`
    const place = placeOf({ owner, key })
    if (this.#lines.has(place) || this.#busy.has(place)) return true
    const base = `line-base.${shortHash(32, organizationId, files)}`
    this.#busy.add(place)
    this.#comingBases.set(base, (this.#comingBases.get(base) ?? 0) + 1)
    try {
      if ((await this.#missingBytes()) > 0) return false
      await this.#oneBase.run(() => this.#bases.keepBelowLines(base, image))
      await this.#host.snapshot(sandboxId, name, base)
      const line = { name, owner, key, before, base, usedAt: this.#now(), holds: 0 }
      this.#add(line)
      await this.#use(line)
      return true
    } catch (err) {
      this.#log.warn({ err, name }, 'a line of a definition could not be kept')
      return false
    } finally {
      this.#busy.delete(place)
      const others = (this.#comingBases.get(base) ?? 1) - 1
      if (others === 0) this.#comingBases.delete(base)
      else this.#comingBases.set(base, others)
      void this.sweep()
    }
  }

  /** Must be called every few seconds. Evicts lines when the pool has little space left for sandboxes. */
  async relieve(): Promise<void> {
    const isDue = this.#now() - this.#sweptAt > sweepEveryMs
    if (this.#lines.size > 0 && (isDue || (await this.#missingBytes()) > 0)) await this.sweep()
  }

  static readonly relieveSeconds = relieveSeconds

  /** Evicts lines beyond the limits. Never throws. */
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
        this.#log.warn({ err }, 'kept lines of definitions could not be swept')
      }
    }
    // No await lies between the last check and this line, so a later caller starts a new sweep.
    this.#sweeping = undefined
  }

  #add(line: Line): void {
    this.#lines.set(placeOf(line), line)
  }

  #find(owner: string, key: string): Line | undefined {
    return this.#lines.get(placeOf({ owner, key }))
  }

  /** The line itself and all lines that it builds on, the nearest first. */
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

  /** Bytes that must be evicted until the pool has enough free space for the disks of sandboxes. Negative if it has enough. */
  async #missingBytes(): Promise<number> {
    const { freeBytes, wholeBytes } = await this.#host.room()
    return Math.min(this.#limits.freeBytes, wholeBytes * this.#limits.freeShare) - freeBytes
  }

  /**
   * All bytes of each line's disk, without the base image. Data that several lines share is counted for each of them: the kernel
   * does not say how much two disks share, and a line may replace every byte of the line before it.
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
      // At most this many bytes become free. If fewer become free, the next call of `relieve` evicts more lines.
      missing -= bytes
      all.remove(line, bytes)
      own.remove(line, bytes)
    }
    this.#bytes = all.bytes
    this.#addedToImages = [...sizes.values()].reduce((sum, bytes) => sum + bytes, 0)
  }

  /** The longest unused lines come first. Among lines that build on each other, the last one comes first. */
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
