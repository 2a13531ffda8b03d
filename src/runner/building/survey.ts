// Examines the stages of a definition before any line runs: their base images, the cache keys of their lines, and the cached lines.
import { type BuildStep, isOnStage, originsOf, type Plan, type Stage } from '#src/runner/images/definition/plan.ts'
import { failedAt } from '#src/runner/images/image-failed.ts'
import type { ContainerConfig } from '#src/runner/images/manifest.ts'
import { formatReference, parseReference, pinned } from '#src/runner/images/reference.ts'
import type { CopySource } from '../copying/source.ts'
import type { BaseSource, BuildRequest } from './image-builder.ts'
import type { CachedLine, LineCache } from './line-cache.ts'
import { inputsOf, mayChange } from './line-inputs.ts'
import { keyAfter, keyOfBase } from './line-keys.ts'

const GiB = 1024 ** 3

const stageMark = '.stage-'
/** Whether an image or template of this name exists only during the build of a definition. */
export const isStageName = (image: string): boolean => image.includes(stageMark)
export const stageName = (image: string, of: string | number): string => `${image}${stageMark}${of}`

/** A fetched base image. `name`: the image or template from which the stage's sandbox is made. */
type Base = { name: string; image: string; files: string; container: ContainerConfig; key: string }

/** The line cache, and the organization whose cached lines a build may use. */
export type OwnLines = { lines: LineCache; organizationId: string }

/** A stage of a Dockerfile, with its base image and its cached lines. */
export type Looked = {
  stage: Stage
  steps: readonly BuildStep[]
  config: ContainerConfig
  /** The image or template from which the stage's sandbox is made. Undefined: the disk of the stage that FROM names is used. */
  from: string | undefined
  /** The base image of the disk of the stage, and text that identifies the files of that image. */
  base: { image: string; files: string }
  /** Cache keys of the disk after each line of the stage. A key is undefined if it depends on later work, such as a download. */
  keys: (string | undefined)[]
  /** Cache key of the disk on which the first line of the stage runs. */
  firstKey: string | undefined
  /**
   * Cache key of the last cached line of this stage. If no line of this stage is cached: the `keptKey` of the stage on which it is
   * built.
   */
  keptKey: string | undefined
  /** Number of the stage's lines that need not run, because the disk after them is cached. */
  kept: number
  /** Number of the stage's lines that have run or need not run. */
  done: number
  /** Cache key of the disk after the stage's last line. Undefined until it can be computed. */
  lastKey: string | undefined
}

type SurveyParts = {
  request: BuildRequest
  own: OwnLines | undefined
  /** The files that the caller sent with the definition. */
  files: CopySource | undefined
  signal: AbortSignal
  /** Called once for each stage that has cached lines. `looked`: the stage, and which of its lines are cached. */
  onKept: (looked: Looked) => void
}

export class Survey {
  readonly #request: BuildRequest
  readonly #own: OwnLines | undefined
  readonly #files: CopySource | undefined
  readonly #signal: AbortSignal
  readonly #onKept: SurveyParts['onKept']
  #plan: Plan
  /** The fetched base images, by the index of their stage. */
  readonly #fetched = new Map<number, Base>()
  readonly #looks = new Map<number, Promise<Looked>>()
  readonly #looked = new Map<number, Looked>()
  readonly #identities = new Map<string, Promise<string>>()
  readonly #held: CachedLine[] = []
  /** Names of images that this build has fetched and removes at its end. */
  readonly bases: string[] = []

  constructor({ request, own, files, signal, onKept }: SurveyParts) {
    this.#request = request
    this.#plan = request.plan
    this.#own = own
    this.#files = files
    this.#signal = signal
    this.#onKept = onKept
  }

  /** The plan of the build. Once all base images are fetched, it has all stages that their ONBUILD triggers need. */
  get plan(): Plan {
    return this.#plan
  }

  /** Returns what is known about a stage. Must be called only after `look` has resolved for that stage. */
  get(index: number): Looked {
    return this.#looked.get(index) as Looked
  }

  all(): Looked[] {
    return [...this.#looked.values()]
  }

  /** Ends the protection of this build's cached lines, so that they may be evicted. */
  release(): void {
    for (const line of this.#held) this.#own?.lines.release(line)
  }

  /** Returns the stages of the plan whose base image is not yet fetched. */
  stagesWithoutBase(): Stage[] {
    return this.#plan.stages.filter(({ index, from }) => !isOnStage(from) && !this.#fetched.has(index))
  }

  async fetchBase(stage: Stage): Promise<void> {
    const { from } = stage
    if (isOnStage(from)) return
    const image = this.#nameOfBase(stage)
    const source = this.sourceOf(stage) as BaseSource
    if (image !== this.#request.image) this.bases.push(image)
    const { container, files } = await this.#request.bringBase(image, source, this.#signal).catch((error: unknown) => {
      throw failedAt(`Line ${stage.line}: FROM ${from === 'scratch' ? from : from.image}`, error)
    })
    // The key contains the snapshot's name, because `files` identifies only the snapshot's base image.
    const name = source.kind === 'image' ? source.image : image
    const key = keyOfBase(source.kind === 'image' ? `snapshot ${name} ${files}` : files)
    this.#fetched.set(stage.index, { name, image, files, container, key })
  }

  /** Adds the stages that ONBUILD triggers of the fetched base images need. Throws if stages need each other in a circle. */
  planAgain(): void {
    this.#plan = this.#plan.with(new Map([...this.#fetched].map(([index, { container }]) => [index, container])))
  }

  /** Looks at a stage, after all base images are fetched. Waits only for stages that come before this stage in the plan. */
  look(index: number): Promise<Looked> {
    let look = this.#looks.get(index)
    if (look === undefined) {
      look = this.#lookAt(this.#stage(index))
      look.catch(() => {})
      this.#looks.set(index, look)
    }
    return look
  }

  async #lookAt(stage: Stage): Promise<Looked> {
    const looked = await this.#begin(stage)
    if (this.#own === undefined) looked.firstKey = undefined
    else {
      await this.#findKeys(looked, this.#own)
      await this.#findKept(looked, this.#own)
    }
    this.#looked.set(stage.index, looked)
    return looked
  }

  async #begin(stage: Stage): Promise<Looked> {
    const { from } = stage
    const none = { keys: [], kept: 0, done: 0, lastKey: undefined }
    if (isOnStage(from)) {
      const { config: below, base, lastKey, keptKey } = await this.look(from.stage)
      const { steps, config } = stage.on(below)
      return { ...none, stage, steps, config, from: undefined, base, firstKey: lastKey, keptKey }
    }
    const { name, image, files, container, key } = this.#fetched.get(stage.index) as Base
    const { steps, config } = stage.on(container)
    return { ...none, stage, steps, config, from: name, base: { image, files }, firstKey: key, keptKey: undefined }
  }

  async #findKeys(looked: Looked, { lines, organizationId }: OwnLines): Promise<void> {
    const { steps, keys } = looked
    let { firstKey: key, keptKey } = looked
    for (const step of steps) {
      let fetched: string[] | undefined
      // The cache key of this line depends on a download. `keptKey` is the key of the last cached line before this line. If no
      // cached line comes directly after that one, the download is useless.
      if (mayChange(step) && lines.hasAfter(organizationId, keptKey)) fetched = await this.#fetchDigests(step)
      key = await this.#keyAfter(key, step, fetched)
      keys.push(key)
      if (key !== undefined && lines.has(organizationId, key)) keptKey = key
    }
    looked.lastKey = key
  }

  async #findKept(looked: Looked, { lines, organizationId }: OwnLines): Promise<void> {
    const { keys, steps } = looked
    for (let count = steps.length; count > 0; count--) {
      const key = keys[count - 1]
      const line = key === undefined ? undefined : await lines.hold(organizationId, key)
      if (line === undefined) continue
      this.#held.push(line)
      Object.assign(looked, { kept: count, done: count, from: line.name, keptKey: key })
      this.#onKept(looked)
      return
    }
  }

  /**
   * Returns the cache key of the disk on which a stage's first line runs. If FROM names a stage, the build must have run that
   * stage.
   */
  keyBefore({ stage: { from }, firstKey }: Looked): string | undefined {
    return isOnStage(from) ? this.#lastKey(from.stage) : firstKey
  }

  /**
   * If FROM names a stage, returns the cache key of that stage's last cached line. If that stage has no lines, looks at the stage
   * on which that stage is built. Call this only after the build has run the named stage.
   */
  keptKeyBefore({ stage: { from } }: Looked): string | undefined {
    if (!isOnStage(from)) return undefined
    const below = this.get(from.stage)
    return below.steps.length === 0 ? this.keptKeyBefore(below) : below.keptKey
  }

  #lastKey(index: number): string | undefined {
    const looked = this.get(index)
    return looked.steps.length === 0 ? this.keyBefore(looked) : looked.lastKey
  }

  /**
   * Returns the cache key of the disk after the line that has just run. The line's key in `keys` is outdated if this line or an
   * earlier one has downloaded something new.
   */
  async keyAfterRun(
    { keys, firstKey, done }: Looked,
    key: string | undefined,
    step: BuildStep,
    fetched: readonly string[],
  ): Promise<string | undefined> {
    const isAsLooked = key === (done === 0 ? firstKey : keys[done - 1])
    const mayDiffer = mayChange(step) || originsOf(step).some((origin) => 'stage' in origin)
    const known = isAsLooked && !mayDiffer ? keys[done] : undefined
    return known ?? this.#keyAfter(key, step, fetched)
  }

  async #keyAfter(
    key: string | undefined,
    step: BuildStep,
    fetched: readonly string[] | undefined,
  ): Promise<string | undefined> {
    if (key === undefined) return undefined
    for (const origin of originsOf(step)) if ('stage' in origin) await this.look(origin.stage)
    const inputs = await inputsOf(step, fetched, {
      files: this.#files,
      keyOfStage: (index) => this.#lastKey(index),
      identityOf: (image) => this.#identityOf(image),
      signal: this.#signal,
    }).catch(() => {
      // The line gets no cache key. The error is ignored here, because it occurs again when the line runs.
      this.#signal.throwIfAborted()
      return undefined
    })
    return inputs === undefined ? undefined : keyAfter(key, step, inputs)
  }

  async #fetchDigests(step: BuildStep): Promise<string[] | undefined> {
    const digests: string[] = []
    try {
      const bounds = { mostBytes: this.#request.maxGiB * GiB, signal: this.#signal }
      const { urls = [], repository } = 'copy' in step ? step.copy : {}
      if (repository !== undefined)
        digests.push(await this.#request.withRepository({ repository, ...bounds }, async ({ commit }) => commit))
      for (const { url } of urls)
        digests.push(
          await this.#request.withWebFile(
            { url, mostBytes: this.#request.maxGiB * GiB, signal: this.#signal },
            async ({ digest }) => digest,
          ),
        )
      return digests
    } catch {
      this.#signal.throwIfAborted()
      return undefined
    }
  }

  /** Returns text that identifies the content of an image. */
  #identityOf(name: string): Promise<string> {
    const source = this.sourceNamed(name)
    if (source.kind === 'image') return Promise.resolve(`snapshot ${source.image}`)
    let identity = this.#identities.get(name)
    if (identity === undefined) {
      const reference = parseReference(name)
      identity = this.#request.resolve(name, this.#signal).then((digest) => formatReference(pinned(reference, digest)))
      identity.catch(() => {})
      this.#identities.set(name, identity)
    }
    return identity
  }

  #stage(index: number): Stage {
    return this.#plan.stages.find((stage) => stage.index === index) as Stage
  }

  /**
   * Returns a name for a stage's base image on this host. The last stage is built on one base image, directly or through other
   * stages. That base image gets the name of the built image. Every other base image gets a temporary name, by which the build
   * later removes it.
   */
  #nameOfBase({ index }: Stage): string {
    const { image } = this.#request
    let root = this.#plan.stages.at(-1) as Stage
    while (isOnStage(root.from)) root = this.#stage(root.from.stage)
    return index === root.index ? image : stageName(image, index)
  }

  /** Returns the source of a stage's base image. Undefined if the stage is built on another stage. */
  sourceOf({ from }: Stage): BaseSource | undefined {
    if (from === 'scratch') return { kind: 'scratch' }
    return 'stage' in from ? undefined : this.sourceNamed(from.image)
  }

  sourceNamed(name: string): Extract<BaseSource, { kind: 'registry' | 'image' }> {
    const { snapshots = {} } = this.#request
    const image = Object.hasOwn(snapshots, name) ? snapshots[name] : undefined
    return image === undefined ? { kind: 'registry', reference: name } : { kind: 'image', image }
  }

  /**
   * Returns the image's reference with its digest, if the digest was requested during this build. Otherwise returns the reference
   * unchanged.
   */
  async pinned(reference: string): Promise<string> {
    return (await this.#identities.get(reference)) ?? reference
  }
}
