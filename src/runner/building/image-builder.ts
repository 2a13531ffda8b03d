// Builds the image of a definition. Each stage runs in a sandbox that the runner makes for it, with the usual limits. The disk of
// the last stage becomes the top layer of the image. No code of a definition ever runs on the host.
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

/** `image`: an image on this runner, such as that of a snapshot. */
export type BaseSource =
  | { kind: 'registry'; reference: string }
  | { kind: 'scratch' }
  | { kind: 'image'; image: string }

export type BuildRequest = {
  /** Name of the image that is built, and of the image below it. */
  image: string
  plan: Plan
  /** The files that came with the definition, for its COPY lines. */
  contexts?: Definition['contexts'] | undefined
  maxGiB: number
  signal: AbortSignal
  onProgress: (progress: Progress) => void
  /** Receives the log of the build for people, as it comes. */
  onText?: (text: string) => void
  /** Images on this runner that FROM and `--from` can name, by these names. */
  snapshots?: Definition['snapshots'] | undefined
  /**
   * The build uses cached lines of this organization, and caches its lines for it. Absent: it neither uses nor caches lines.
   */
  organizationId?: string | undefined
  /** Fetches the base image of a stage, or a source of files. Returns its configuration and the name of its files. */
  bringBase: (image: string, source: BaseSource) => Promise<{ container: ContainerConfig; files: string }>
  /** Resolves the name of an image of a registry to its digest. */
  resolve: (reference: string) => Promise<string>
  removeBase: (image: string) => Promise<void>
  withWebFile: Library['withWebFile']
  withRepository: Library['withRepository']
}

type BuilderParts = {
  host: BuildHost
  agentAt: (socketPath: string) => BuildAgent
  /** Where the files of definitions are kept. */
  contexts: ContextStore
  /** Absent: no lines are cached. */
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

  /** Destroys the build sandboxes of a runner that was killed. */
  async removeLeft(): Promise<void> {
    for (const { id } of this.#host.list()) if (isBuildId(id)) await this.#host.destroy(id)
  }

  /**
   * Builds the image and replaces its template. There is no template if the image adds nothing to its base. Returns the
   * configuration of the image.
   */
  async build(request: BuildRequest): Promise<ContainerConfig> {
    const { signal, contexts: of } = request
    signal.throwIfAborted()
    const late = AbortSignal.timeout(this.#timeoutMs)
    const until = AbortSignal.any([signal, late])
    const files = of && (await ContextSource.open({ contexts: this.#contexts, of, signal: until }))
    const parts = { host: this.#host, agentAt: this.#agentAt, lines: this.#lines, files }
    const build = new Build({ ...request, signal: until }, parts)
    // A program in the sandbox may stop the agent from answering. A call to the agent then ends only when the sandbox is
    // destroyed.
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
