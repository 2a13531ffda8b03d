// Builds what a definition asks for: each stage in a sandbox of the runner's own, with the limits of any other, whose disk then
// is what the image adds to the one below it. Nothing of a stranger ever runs on the host.

import type { ContextStore } from '#src/runner/contexts/store.ts'
import { ContextSource } from '#src/runner/copying/context-source.ts'
import { copyFiles, type Fetched } from '#src/runner/copying/copier.ts'
import { ownDirectory, SandboxSource } from '#src/runner/copying/sandbox-source.ts'
import type { CopySource } from '#src/runner/copying/source.ts'
import {
  type BuildStep,
  type CopyStep,
  type Origin,
  originsOf,
  type Plan,
  type RunStep,
  type Stage,
} from '#src/runner/images/definition/plan.ts'
import { ImageFailed } from '#src/runner/images/image-failed.ts'
import type { Library } from '#src/runner/images/library.ts'
import { asSize } from '#src/runner/images/limits.ts'
import type { ContainerConfig } from '#src/runner/images/manifest.ts'
import { piecesOf } from '#src/runner/images/web-file.ts'
import { AgentRefused } from '#src/toolbox/agent/agent.ts'
import type { Definition, Progress } from '#src/wire/runner-link.ts'
import { mount } from './mounts.ts'
import { runCommandOf } from './run-step.ts'
import { type BuildAgent, type BuildHost, isBuildId, Workplace } from './workplace.ts'

export { isBuildId }

/** `image`: one of this runner, such as that of a snapshot. */
export type BaseSource =
  | { kind: 'registry'; reference: string }
  | { kind: 'scratch' }
  | { kind: 'image'; image: string }

export type BuildRequest = {
  /** Name of the image that is built, and of the image below it. */
  image: string
  plan: Plan
  /** The files that its COPY lines mean. */
  contexts?: Definition['contexts'] | undefined
  maxGiB: number
  signal: AbortSignal
  onProgress: (progress: Progress) => void
  /** What a person may read of it, as it comes. */
  onText?: (text: string) => void
  /** The images of this runner that its FROM and `--from` mean, by their names. */
  snapshots?: Definition['snapshots'] | undefined
  /** Brings an image that a stage begins with, or that files come from; answers what it says of itself. */
  bringBase: (image: string, source: BaseSource) => Promise<ContainerConfig>
  removeBase: (image: string) => Promise<void>
  withWebFile: Library['withWebFile']
}

type BuilderParts = {
  host: BuildHost
  agentAt: (socketPath: string) => BuildAgent
  /** Where the files of definitions are kept. */
  contexts: ContextStore
  timeoutMs?: number
}

const GiB = 1024 ** 3
const standardTimeoutMs = 30 * 60_000
/** The stages of one build together, against what its image may have. */
const shareOfStages = 3

const hasEnded = 'the sandbox of the build has ended'

const stageMark = '.stage-'
/** Images and templates that exist while a definition is built. */
export const isStageName = (image: string): boolean => image.includes(stageMark)

export class ImageBuilder {
  readonly #host: BuildHost
  readonly #agentAt: BuilderParts['agentAt']
  readonly #contexts: ContextStore
  readonly #timeoutMs: number

  constructor({ host, agentAt, contexts, timeoutMs = standardTimeoutMs }: BuilderParts) {
    this.#host = host
    this.#contexts = contexts
    this.#agentAt = agentAt
    this.#timeoutMs = timeoutMs
  }

  /** What a runner that was killed has left. */
  async removeLeft(): Promise<void> {
    for (const { id } of this.#host.list()) if (isBuildId(id)) await this.#host.destroy(id)
  }

  /**
   * The template of this name is whole when this resolves, unless the image adds nothing to the one below; what was there by
   * that name before is gone. Answers what the image says of itself.
   */
  async build(request: BuildRequest): Promise<ContainerConfig> {
    const { signal, contexts: of } = request
    signal.throwIfAborted()
    const late = AbortSignal.timeout(this.#timeoutMs)
    const until = AbortSignal.any([signal, late])
    const files = of && (await ContextSource.open({ contexts: this.#contexts, of, signal: until }))
    const build = new Build({ ...request, signal: until }, this.#host, this.#agentAt, files)
    // Code in a sandbox may have stopped its agent from ever answering: then only the sandbox's end frees the caller.
    const giveUp = () => void build.destroyPlaces().catch(() => {})
    until.addEventListener('abort', giveUp, { once: true })
    try {
      return await build.run()
    } catch (error) {
      signal.throwIfAborted()
      if (late.aborted) throw new ImageFailed('took-too-long', 'The build took too long.', { cause: error })
      throw error
    } finally {
      until.removeEventListener('abort', giveUp)
      await build.clear()
    }
  }
}

const keyOf = (origin: Origin): string => ('stage' in origin ? `stage ${origin.stage}` : origin.image)

/** A definition while it is built. */
class Build {
  readonly #request: BuildRequest
  readonly #host: BuildHost
  readonly #agentAt: BuilderParts['agentAt']
  readonly #context: CopySource | undefined
  readonly #places = new Map<string, Workplace>()
  readonly #configs = new Map<number, ContainerConfig>()
  /** Images and templates that go when it is done. */
  readonly #bases: string[] = []
  readonly #templates: string[] = []

  constructor(
    request: BuildRequest,
    host: BuildHost,
    agentAt: BuilderParts['agentAt'],
    context: CopySource | undefined,
  ) {
    this.#request = request
    this.#host = host
    this.#agentAt = agentAt
    this.#context = context
  }

  async run(): Promise<ContainerConfig> {
    const { image, plan } = this.#request
    await this.#host.removeTemplate(image)
    const { stages } = plan
    let config: ContainerConfig | undefined
    for (const [at, stage] of stages.entries()) {
      config = await this.#runStage(stage, stage === stages.at(-1))
      await this.#destroyUnneeded(stages.slice(at + 1))
    }
    return config as ContainerConfig
  }

  async destroyPlaces(): Promise<void> {
    for (const place of this.#places.values()) await place.destroy()
  }

  async #destroyUnneeded(left: readonly Stage[]): Promise<void> {
    const needed = new Set(left.flatMap(({ takesFrom }) => takesFrom.map(keyOf)))
    for (const [key, place] of this.#places) {
      if (needed.has(key)) continue
      await place.destroy()
      this.#places.delete(key)
    }
  }

  async clear(): Promise<void> {
    await this.destroyPlaces()
    for (const template of this.#templates) await this.#host.removeTemplate(template)
    for (const base of this.#bases) await this.#request.removeBase(base)
  }

  #stage(index: number): Stage {
    return this.#request.plan.stages.find((stage) => stage.index === index) as Stage
  }

  /** The name of what a stage begins with. Only what lies below the last one stays. */
  #nameOfBase({ index }: Stage): string {
    const { image, plan } = this.#request
    let root = plan.stages.at(-1) as Stage
    while (root.from !== 'scratch' && 'stage' in root.from) root = this.#stage(root.from.stage)
    return index === root.index ? image : `${image}${stageMark}${index}`
  }

  async #begin(stage: Stage): Promise<{ from: string; container: ContainerConfig }> {
    const { from } = stage
    if (from !== 'scratch' && 'stage' in from)
      return { from: this.#templateOf(from.stage), container: this.#configs.get(from.stage) as ContainerConfig }
    const name = this.#nameOfBase(stage)
    const source: BaseSource = from === 'scratch' ? { kind: 'scratch' } : this.#sourceNamed(from.image)
    if (name !== this.#request.image) this.#bases.push(name)
    const container = await this.#request.bringBase(name, source)
    // A snapshot may have a disk of its own over what lies below it.
    return { from: source.kind === 'image' ? source.image : name, container }
  }

  #sourceNamed(name: string): BaseSource {
    const { snapshots = {} } = this.#request
    const image = Object.hasOwn(snapshots, name) ? snapshots[name] : undefined
    return image === undefined ? { kind: 'registry', reference: name } : { kind: 'image', image }
  }

  #templateOf(index: number): string {
    return `${this.#request.image}${stageMark}${index}.disk`
  }

  async #runStage(stage: Stage, isLast: boolean): Promise<ContainerConfig> {
    const { image, plan, onText = () => {} } = this.#request
    const { from, container } = await this.#begin(stage)
    const { steps, config } = stage.on(container)
    this.#configs.set(stage.index, config)
    const isBase = plan.stages.some(
      ({ from: other }) => other !== 'scratch' && 'stage' in other && other.stage === stage.index,
    )
    const isWhole =
      stage.from === 'scratch' || ('image' in stage.from && this.#sourceNamed(stage.from.image).kind !== 'image')
    const addsNothing = steps.length === 0 && isWhole
    if (isLast && addsNothing) return config
    if (plan.stages.length > 1) onText(`Stage ${stage.index}, from line ${stage.line}\n`)
    const place = await this.#open(keyOf({ stage: stage.index }), from)
    for (const [index, step] of steps.entries()) {
      this.#request.onProgress({ step: `line ${step.line}`, percent: Math.floor((index / steps.length) * 100) })
      await this.#perform(place, step)
    }
    await this.#checkSize()
    if (isLast) {
      // Caches, and what else the build kept there.
      await removeOwn(place)
      await place.stop()
      await place.snapshot(image, image)
    } else if (isBase) {
      const template = this.#templateOf(stage.index)
      await this.#host.removeTemplate(template)
      this.#templates.push(template)
      await place.snapshot(template)
    }
    return config
  }

  async #perform(place: Workplace, step: BuildStep): Promise<void> {
    const { signal, onText = () => {} } = this.#request
    signal.throwIfAborted()
    try {
      for (const origin of originsOf(step)) await this.#openOrigin(origin)
      if ('argv' in step) await this.#run(place, step)
      else if ('copy' in step) {
        onText(`Line ${step.line}: ${step.text}\n`)
        onText(`${await this.#copy(place, step.copy)}\n`)
      } else await makeDirectory(place, step.directory)
    } catch (error) {
      signal.throwIfAborted()
      if (error instanceof ImageFailed)
        throw new ImageFailed(error.failure, `Line ${step.line}: ${error.message}`, { cause: error.cause })
      const why = error instanceof AgentRefused ? `the files cannot be written (${error.errno})` : hasEnded
      throw new ImageFailed('build-failed', `Line ${step.line}: ${why}`, { cause: error })
    }
  }

  /** `fetched`: what came from the addresses so far. */
  async #copy(place: Workplace, copy: CopyStep['copy'], fetched: readonly Fetched[] = []): Promise<string> {
    const next = copy.urls[fetched.length]
    if (next === undefined) {
      const source = copy.sources.length === 0 ? undefined : this.#sourceOf(copy.from)
      return copyFiles(copy, { source, files: place.files(), fetched, ...this.#bounds() })
    }
    const { url, name } = next
    return this.#request.withWebFile({ url, checksum: copy.checksum, ...this.#bounds() }, (file) => {
      const { size, modifiedSeconds } = file
      return this.#copy(place, copy, [...fetched, { name, size, modifiedSeconds, pieces: () => piecesOf(file) }])
    })
  }

  async #run(place: Workplace, step: RunStep): Promise<void> {
    const { signal, onText = () => {} } = this.#request
    const mounting = { files: place.files(), sourceOf: (origin: Origin | undefined) => this.#sourceOf(origin) }
    const unmount = await mount(step.mounts ?? [], { ...mounting, ...this.#bounds() })
    if (step.isOffline) await place.setOffline(true)
    await runCommandOf(place, step, { signal, onText })
    if (step.isOffline) await place.setOffline(false)
    await unmount()
  }

  #bounds() {
    return { mostBytes: this.#request.maxGiB * GiB, signal: this.#request.signal }
  }

  async #open(key: string, from: string): Promise<Workplace> {
    const { image, maxGiB } = this.#request
    const place = new Workplace({ host: this.#host, agentAt: this.#agentAt, from, key: `${image} ${key}`, maxGiB })
    this.#places.set(key, place)
    await place.start()
    return place
  }

  /** An image that only files are taken from gets a sandbox too, in which nothing runs. */
  async #openOrigin(origin: Origin): Promise<void> {
    if ('stage' in origin || this.#places.has(keyOf(origin))) return
    const name = `${this.#request.image}${stageMark}from-${this.#bases.length}`
    this.#bases.push(name)
    const source = this.#sourceNamed(origin.image)
    await this.#request.bringBase(name, source)
    await this.#open(keyOf(origin), source.kind === 'image' ? source.image : name)
  }

  #sourceOf(origin: Origin | undefined): CopySource {
    if (origin === undefined) {
      if (this.#context === undefined)
        throw new ImageFailed('unsupported', 'it needs files, and none came with the definition')
      return this.#context
    }
    const place = this.#places.get(keyOf(origin))
    if (place === undefined) throw new ImageFailed('unsupported', 'it takes files from a stage that is not built')
    const name = 'stage' in origin ? `in stage ${origin.stage}` : `in ${origin.image}`
    return new SandboxSource({ files: place.files(), place: name, signal: this.#request.signal })
  }

  /** Each stage has a disk, and all of them together have a bound. */
  async #checkSize(): Promise<void> {
    const sizes = await Promise.all([...this.#places.values()].map((place) => place.diskUsed()))
    const bytes = sizes.reduce((sum, each) => sum + each, 0)
    const most = shareOfStages * this.#request.maxGiB * GiB
    if (bytes > most)
      throw new ImageFailed(
        'too-large',
        `The stages of the definition have ${asSize(bytes)} and may have ${asSize(most)}.`,
      )
  }
}

const removeOwn = async (place: Workplace): Promise<void> => {
  try {
    await place.files().remove(ownDirectory, { recursive: true })
  } catch (error) {
    if (!(error instanceof AgentRefused && error.errno === 'ENOENT')) throw error
  }
}

const makeDirectory = async (place: Workplace, directory: string): Promise<void> => {
  const files = place.files()
  try {
    await files.mkdir(directory, 0o755)
    if ((await files.stat(directory, { followLink: true })).type === 'directory') return
  } catch (error) {
    throw new ImageFailed('build-failed', `the directory ${directory} cannot be made`, { cause: error })
  }
  throw new ImageFailed('build-failed', `${directory} is no directory`)
}
