// Builds the image of a definition. Each stage runs in a sandbox with the usual limits. The last stage's disk becomes the top
// layer of the image.
import type { ContextStore } from '#src/runner/contexts/store.ts'
import { ContextSource } from '#src/runner/copying/context-source.ts'
import type { Plan } from '#src/runner/images/definition/plan.ts'
import { ImageFailed } from '#src/runner/images/image-failed.ts'
import type { Library } from '#src/runner/images/library.ts'
import type { ContainerConfig } from '#src/runner/images/manifest.ts'
import type { Definition, Progress } from '#src/wire/runner-link.ts'
import { Build } from './build.ts'
import type { LineCache } from './line-cache.ts'
import { type BuildAgent, type BuildHost, isBuildId } from './workplace.ts'

export { isStageName } from './survey.ts'
export { isBuildId }

/** Where a base image comes from. `image`: an image on this runner, such as a snapshot. */
export type BaseSource =
  | { kind: 'registry'; reference: string }
  | { kind: 'scratch' }
  | { kind: 'image'; image: string }

export type BuildRequest = {
  /** Name of the image to build. Its base image is fetched under this name too. */
  image: string
  plan: Plan
  /** The files that the caller sent with the definition, for its COPY lines. */
  contexts?: Definition['contexts'] | undefined
  maxGiB: number
  signal: AbortSignal
  onProgress: (progress: Progress) => void
  /** Called with each piece of the build's log, as text for people. */
  onText?: (text: string) => void
  /** Images on this runner that FROM and `--from` may use. The keys are the names that the definition uses. */
  snapshots?: Definition['snapshots'] | undefined
  /** Organization whose line cache the build uses. Absent: the build neither uses nor caches lines. */
  organizationId?: string | undefined
  /**
   * Fetches the base image of a stage, or an image from which only files are copied. `files`: text that identifies the image's
   * files.
   */
  bringBase: (
    image: string,
    source: BaseSource,
    signal: AbortSignal,
  ) => Promise<{ container: ContainerConfig; files: string }>
  /** Resolves the name of an image in a registry to the digest that the image has now. */
  resolve: (reference: string, signal: AbortSignal) => Promise<string>
  removeBase: (image: string) => Promise<void>
  withWebFile: Library['withWebFile']
  withRepository: Library['withRepository']
}

type BuilderParts = {
  host: BuildHost
  agentAt: (socketPath: string) => BuildAgent
  /** Stores the files that callers send with definitions. */
  contexts: ContextStore
  /** The cached lines. Absent: no lines are cached. */
  lines?: LineCache
  timeoutMs?: number
}

const standardTimeoutMs = 30 * 60_000

export class ImageBuilder {
  readonly #host: BuildHost
  readonly #agentAt: BuilderParts['agentAt']
  readonly #contexts: ContextStore
  readonly #lines: LineCache | undefined
  readonly #timeoutMs: number

  constructor({ host, agentAt, contexts, lines, timeoutMs = standardTimeoutMs }: BuilderParts) {
    this.#host = host
    this.#contexts = contexts
    this.#agentAt = agentAt
    this.#lines = lines
    this.#timeoutMs = timeoutMs
  }

  /** Destroys the sandboxes of builds that an earlier runner left when it was killed. */
  async removeLeft(): Promise<void> {
    for (const { id } of this.#host.list()) if (isBuildId(id)) await this.#host.destroy(id)
  }

  /**
   * Builds the image, as a template with the name `request.image`, and returns its configuration. No template is made if the
   * image has the same files as its base image.
   */
  async build(request: BuildRequest): Promise<ContainerConfig> {
    const { signal, contexts: of } = request
    signal.throwIfAborted()
    const late = AbortSignal.timeout(this.#timeoutMs)
    const until = AbortSignal.any([signal, late])
    const files = of && (await ContextSource.open({ contexts: this.#contexts, of, signal: until }))
    const parts = { host: this.#host, agentAt: this.#agentAt, lines: this.#lines, files }
    const build = new Build({ ...request, signal: until }, parts)
    // A program in a build's sandbox may stop the agent. A call to the agent then ends only when the sandbox is destroyed.
    const giveUp = () => void build.destroyPlaces().catch(() => {})
    until.addEventListener('abort', giveUp, { once: true })
    try {
      return await build.run()
    } catch (error) {
      signal.throwIfAborted()
      if (late.aborted)
        throw new ImageFailed(
          'took-too-long',
          `The build took too long: it was not finished after ${this.#timeoutMs / 1000} s.`,
          { cause: error },
        )
      throw error
    } finally {
      until.removeEventListener('abort', giveUp)
      await build.clear()
    }
  }
}
