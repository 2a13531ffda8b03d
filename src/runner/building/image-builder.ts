// Builds what a definition asks for: each stage in a sandbox of the runner's own, with the limits of any other, whose disk then
// is what the image adds to the one below it. Nothing of a stranger ever runs on the host.
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
  /** Whose kept lines it may use. Absent: it uses none and keeps none. */
  organizationId?: string | undefined
  /** Brings an image that a stage begins with, or that files come from; answers what it says of itself and what names its files. */
  bringBase: (image: string, source: BaseSource) => Promise<{ container: ContainerConfig; files: string }>
  /** Digest that the name of an image of a registry stands for. */
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
  /** Absent: every line is carried out each time. */
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
    const parts = { host: this.#host, agentAt: this.#agentAt, lines: this.#lines, files }
    const build = new Build({ ...request, signal: until }, parts)
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
