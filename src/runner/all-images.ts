// Every image of this runner, whichever way it came here: brought from elsewhere, or made of a sandbox's disk.
import type { ImageAssignment, ImageConfig, ImageReport, ImageSource, Progress } from '#src/wire/runner-link.ts'
import type { Host } from './host.ts'

/** What is said of an image that is here. */
export type Known = Pick<ImageReport, 'digest' | 'sizeBytes' | 'config'>

/** As much of the image store as is needed here. */
export type BroughtImages = {
  list(): string[]
  rootfsOf(image: string): string | undefined
  configOf(image: string): ImageConfig | undefined
  /** Undefined for one that was not brought but built in. */
  find(image: string): Known | undefined
  bring(request: {
    image: string
    source: ImageSource
    maxGiB: number
    signal: AbortSignal
    onProgress: (progress: Progress) => void
  }): Promise<Known>
  remove(image: string): Promise<void>
}

export type TemplateHost = Pick<Host, 'snapshot' | 'templates' | 'removeTemplate' | 'basesInUse'>

export type Bringing = { signal: AbortSignal; onProgress: (progress: Progress) => void }

export class AllImages {
  readonly #brought: BroughtImages
  readonly #host: TemplateHost
  #templates: ReadonlyMap<string, { base: string; sizeBytes?: number }> = new Map()

  private constructor(brought: BroughtImages, host: TemplateHost) {
    this.#brought = brought
    this.#host = host
  }

  static async open(brought: BroughtImages, host: TemplateHost): Promise<AllImages> {
    const images = new AllImages(brought, host)
    await images.#look()
    return images
  }

  list(): string[] {
    return [...this.#brought.list(), ...this.#templates.keys()]
  }

  /** Undefined if it is not here. */
  find(image: string): Known | undefined {
    const template = this.#templates.get(image)
    if (template === undefined) {
      if (this.#brought.rootfsOf(image) === undefined) return undefined
      const config = this.#brought.configOf(image)
      return this.#brought.find(image) ?? (config ? { config } : {})
    }
    const { base, sizeBytes } = template
    const config = this.#brought.configOf(base)
    return { ...(sizeBytes === undefined ? {} : { sizeBytes }), ...(config ? { config } : {}) }
  }

  async bring({ image, source, maxGiB }: ImageAssignment, { signal, onProgress }: Bringing): Promise<Known> {
    if (source.kind !== 'sandbox') return this.#brought.bring({ image, source, maxGiB, signal, onProgress })
    await this.#host.snapshot(source.sandboxId, image)
    await this.#look()
    return this.find(image) ?? {}
  }

  /** False: something here needs it, and it stays. */
  async remove(image: string): Promise<boolean> {
    if (this.#templates.has(image)) {
      // What was made from it has a disk of its own.
      await this.#host.removeTemplate(image)
      await this.#look()
      return true
    }
    if ((await this.#host.basesInUse()).has(image)) return false
    await this.#brought.remove(image)
    return true
  }

  async #look() {
    this.#templates = new Map((await this.#host.templates()).map(({ image, ...template }) => [image, template]))
  }
}
