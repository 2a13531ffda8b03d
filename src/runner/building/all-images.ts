// All images on this runner: those that were pulled or built, and snapshots that were made of sandboxes' disks.

import { planOf } from '#src/runner/images/definition/plan.ts'
import { ImageFailed } from '#src/runner/images/image-failed.ts'
import type { BringRequest, Library } from '#src/runner/images/library.ts'
import type { ContainerConfig } from '#src/runner/images/manifest.ts'
import { leastDiskFor } from '#src/runner/overlay/pool.ts'
import type { Template } from '#src/runner/overlay/templates.ts'
import type {
  Definition,
  ImageAssignment,
  ImageConfig,
  ImageReport,
  ImageSource,
  Progress,
} from '#src/wire/runner-link.ts'
import type { Host } from '../host.ts'
import type { GivenBack } from '../images/given-back.ts'
import { idsNamedIn } from '../oci/ids.ts'
import { type ImageBuilder, isStageName } from './image-builder.ts'
import { isLineName } from './line-cache.ts'

/** Facts about an image on this runner that are reported to control. */
export type Known = Pick<ImageReport, 'digest' | 'sizeBytes' | 'leastDiskBytes' | 'config'>

/** The methods of the image store that `AllImages` needs. */
export type BroughtImages = {
  list(): string[]
  rootfsOf(image: string): string | undefined
  /** Returns the base image for a new disk: `image` itself or, for the default image, its newest version. */
  newest(image: string): string
  configOf(image: string): ImageConfig | undefined
  /** Bytes of the image's files; undefined if unknown. */
  sizeOf(image: string): number | undefined
  /** Returns the description of a fetched image. Undefined for any other image, such as the built-in image. */
  find(image: string): Known | undefined
  bring(request: {
    image: string
    source: ImageSource
    maxGiB: number
    organizationId?: string | undefined
    logins?: BringRequest['logins']
    signal: AbortSignal
    onProgress: (progress: Progress) => void
    onLine?: (line: string) => void
  }): Promise<Known>
  /** Fetches the base image of a definition. `list` does not return the image until `complete` is called. */
  bringBase(request: BringRequest): Promise<{ container: ContainerConfig; files: string }>
  withWebFile: Library['withWebFile']
  withRepository: Library['withRepository']
  resolve: Library['resolve']
  /** Makes `list` return a built image. The image's disk must already be a template with the name `image`. */
  complete(image: string, config: ContainerConfig): Promise<void>
  remove(image: string): Promise<void>
  /** Names of the base images whose files this host has hashed, and perhaps put into the object store. */
  bases?(): string[]
}

type TemplateHost = Pick<
  Host,
  | 'snapshot'
  | 'templates'
  | 'template'
  | 'removeTemplate'
  | 'basesInUse'
  | 'storeTemplate'
  | 'bringTemplate'
  | 'removeStoredTemplate'
>

/** An image that this runner must fetch or build, with its source. */
export type ToBring = ImageAssignment & { source: ImageSource }

type Bringing = {
  signal: AbortSignal
  onProgress: (progress: Progress) => void
  /** Called with each line about the progress of a build or download, as text for people. */
  onText?: (text: string) => void
}

export class AllImages {
  readonly #brought: BroughtImages
  readonly #host: TemplateHost
  readonly #builder: Pick<ImageBuilder, 'build'>
  readonly #configs = new Map<string, ImageConfig | undefined>()
  readonly #templates = new Map<string, Template>()
  readonly #givenBack: GivenBack | undefined

  private constructor(
    brought: BroughtImages,
    host: TemplateHost,
    builder: Pick<ImageBuilder, 'build'>,
    givenBack?: GivenBack,
  ) {
    this.#givenBack = givenBack
    this.#brought = brought
    this.#host = host
    this.#builder = builder
  }

  /** Opens the images of this runner. Removes unfinished builds of a runner that was killed. */
  static async open(
    brought: BroughtImages,
    host: TemplateHost,
    builder: Pick<ImageBuilder, 'build' | 'removeLeft'>,
    givenBack?: GivenBack,
  ): Promise<AllImages> {
    const images = new AllImages(brought, host, builder, givenBack)
    await builder.removeLeft()
    for (const { image, ...template } of await host.templates()) {
      if (isLineName(image)) continue
      const isTorn = image === template.base && brought.find(image) === undefined
      if (isTorn || isStageName(image)) await host.removeTemplate(image)
      else images.#templates.set(image, template)
    }
    return images
  }

  list(): string[] {
    return [...new Set([...this.#brought.list(), ...this.#templates.keys(), ...(this.#brought.bases?.() ?? [])])]
  }

  /** Total bytes that built images and snapshots add to their base images. An image that is not measured yet counts as 0. */
  addedBytes(): number {
    return [...this.#templates.values()].reduce((sum, { sizeBytes = 0 }) => sum + sizeBytes, 0)
  }

  /** Returns the part of an image's configuration that applies to sandboxes of this image. */
  configOf(image: string): ImageConfig | undefined {
    if (!this.#configs.has(image)) this.#configs.set(image, this.#brought.find(image)?.config ?? this.#builtIn(image))
    return this.#configs.get(image)
  }

  /** The working directory `/` has a special meaning here: each command starts in the home directory of its user. */
  #builtIn(image: string): ImageConfig | undefined {
    const config = this.#brought.configOf(image)
    return config && { ...config, workdir: '/' }
  }

  /** Describes an image. Undefined if the image is not on this runner. */
  find(image: string): Known | undefined {
    const template = this.#templates.get(image)
    if (template === undefined) {
      if (this.#brought.rootfsOf(image) === undefined) return undefined
      const config = this.#brought.configOf(image)
      // For the built-in image, only the configuration is known. For an image that is still being built, nothing is known yet.
      return this.#brought.find(image) ?? (config && { config })
    }
    const { base, sizeBytes } = template
    const config = this.#brought.configOf(base)
    const below = base === image ? this.#brought.find(base) : undefined
    const least = sizeBytes === undefined ? {} : { leastDiskBytes: leastDiskFor(sizeBytes) }
    const whole = sizeBytes === undefined ? {} : { sizeBytes: (this.#brought.sizeOf(base) ?? 0) + sizeBytes }
    if (below !== undefined) return { ...below, ...least, ...whole }
    return { ...whole, ...least, ...(config ? { config } : {}) }
  }

  async bring(assignment: ToBring, { signal, onProgress, onText = () => {} }: Bringing): Promise<Known> {
    const { image, source, maxGiB, organizationId, logins } = assignment
    if (source.kind === 'definition') return this.#build(assignment, source, { signal, onProgress, onText })
    if (source.kind === 'store') {
      await this.#host.bringTemplate(image, { sha256: source.sha256, maxGiB }, { signal, onProgress })
      await this.#look(image)
      return this.find(image) ?? {}
    }
    if (source.kind !== 'sandbox') {
      const known = await this.#brought.bring({
        ...{ image, source, maxGiB, organizationId, logins, signal, onProgress },
        onLine: (line) => onText(`${line}\n`),
      })
      this.#configs.clear()
      return this.find(image) ?? known
    }
    if (source.isMade)
      throw new ImageFailed(
        'not-found',
        'The snapshot is lost. It cannot be made again, because its sandbox may have changed since then.',
      )
    await this.#host.snapshot(source.sandboxId, image)
    await this.#look(image)
    return this.find(image) ?? {}
  }

  /** Whether this runner has the base image that `source` needs. Only a snapshot in the object store needs a base image. */
  hasBaseOf(source: ImageSource): boolean {
    return source.kind !== 'store' || this.#brought.rootfsOf(this.#brought.newest(source.base)) !== undefined
  }

  /** Stores a snapshot of a sandbox in the object store, so that other runners can fetch it. */
  async store(image: string, signal: AbortSignal): Promise<{ sha256: string; base?: string }> {
    return await this.#host.storeTemplate(image, signal)
  }

  async removeStored(image: string): Promise<void> {
    await this.#host.removeStoredTemplate(image)
  }

  /** Removes an image; no error if it does not exist. Returns false if a disk or a template on this runner still needs it. */
  async remove(image: string): Promise<boolean> {
    const template = await this.#look(image)
    if (template === undefined && this.#brought.rootfsOf(image) === undefined) return true
    if (template?.base === image) {
      if ((await this.#host.basesInUse(image)).has(image)) return false
      // Remove the template last: if the runner is killed between the two removals, the next runner removes the template.
      await this.#brought.remove(image)
      await this.#removeTemplate(image, template)
      return true
    }
    if (template !== undefined) {
      // Sandboxes that were made from this template have complete copies of its disk.
      await this.#removeTemplate(image, template)
      return true
    }
    if ((await this.#host.basesInUse()).has(image)) return false
    await this.#brought.remove(image)
    return true
  }

  async #removeTemplate(image: string, { sizeBytes = 0 }: Template): Promise<void> {
    await this.#host.removeTemplate(image)
    this.#givenBack?.add('images', 'unused', sizeBytes)
    await this.#look(image)
  }

  async #build(
    { image, maxGiB, organizationId, logins }: ToBring,
    { dockerfile, contexts, snapshots }: Definition,
    { signal, onProgress, onText = () => {} }: Bringing,
  ): Promise<Known> {
    const plan = planOf(dockerfile, contexts !== undefined, new Set(Object.keys(snapshots ?? {})))
    const brought = this.#brought
    const largeIds = idsNamedIn(dockerfile)
    const onLine = (line: string) => onText(`${line}\n`)
    // Each line's cache key contains the large user ids (oci/ids.ts) that the Dockerfile names. In the build's sandboxes, only
    // these large ids and those of the base image exist. So the ids may change a line's result.
    const withIds = ({ container, files }: { container: ContainerConfig; files: string }) => ({
      container,
      files: [files, ...largeIds].join(' '),
    })
    try {
      const config = await this.#builder.build({
        ...{ image, plan, contexts, maxGiB, organizationId, signal, onProgress, onText },
        // The newest version of the default image is chosen once for the whole build. So all stages use it, even if a newer
        // version is made meanwhile.
        snapshots: snapshots && this.#pinned(snapshots),
        bringBase: async (name, source, signal) => {
          const request = { image: name, maxGiB, organizationId, logins, largeIds, signal, onProgress, onLine }
          if (source.kind !== 'image') return withIds(await brought.bringBase({ ...request, source }))
          const { base, container } = this.#here(source.image)
          const { files } = await brought.bringBase({ ...request, source: { kind: 'image', image: base } })
          return withIds({ container, files })
        },
        resolve: (reference, signal) => brought.resolve(reference, maxGiB, signal, { organizationId, logins }),
        removeBase: (name) => brought.remove(name),
        withWebFile: (wanted, use) => brought.withWebFile(wanted, use),
        withRepository: (wanted, use) => brought.withRepository(wanted, use),
      })
      await brought.complete(image, config)
    } catch (error) {
      await brought.remove(image)
      throw error
    }
    await this.#look(image)
    return this.find(image) ?? {}
  }

  #pinned(snapshots: Readonly<Record<string, string>>): Record<string, string> {
    return Object.fromEntries(Object.entries(snapshots).map(([name, image]) => [name, this.#brought.newest(image)]))
  }

  /** Returns the base image of a snapshot on this runner, and the snapshot's configuration. */
  #here(image: string): { base: string; container: ContainerConfig } {
    const config = this.find(image)?.config
    if (config === undefined)
      throw new ImageFailed('not-found', 'The snapshot that the definition builds on is not on this runner.')
    const { entrypoint, env, user, workdir } = config
    const container = { entrypoint: [...entrypoint], cmd: [], env: { ...env }, user, workdir }
    return { base: this.#templates.get(image)?.base ?? this.#brought.newest(image), container }
  }

  /**
   * Reads the template of one image again. Reading all templates would store old entries, because other templates may change
   * meanwhile.
   */
  async #look(image: string): Promise<Template | undefined> {
    this.#configs.clear()
    const template = await this.#host.template(image)
    if (template === undefined) this.#templates.delete(image)
    else this.#templates.set(image, template)
    return template
  }
}
