// Carries out the RUN and COPY lines of a definition: in a sandbox of the runner's own, with the limits of any other, whose disk
// then is what the image adds to the one below it. Nothing of a stranger ever runs on the host.
import { createHash } from 'node:crypto'
import { StringDecoder } from 'node:string_decoder'
import { type Agent, StartFailed } from '#src/toolbox/agent/agent.ts'
import type { Assignment, Definition, Progress } from '#src/wire/runner-link.ts'
import type { ContextStore } from './contexts/store.ts'
import { Copier } from './copying/copier.ts'
import type { Host } from './host.ts'
import type { BuildStep, CopyStep, RunStep } from './images/definition/plan.ts'
import { ImageFailed } from './images/image-failed.ts'

export type BuildRequest = {
  /** Its name, also that of the image below it. */
  image: string
  steps: readonly BuildStep[]
  /** The files that its COPY lines mean. */
  contexts?: Definition['contexts']
  maxGiB: number
  signal: AbortSignal
  onProgress: (progress: Progress) => void
  /** What a person may read of it, as it comes. */
  onText?: (text: string) => void
}

type BuilderParts = {
  host: Pick<Host, 'list' | 'get' | 'start' | 'stop' | 'destroy' | 'snapshot' | 'removeTemplate'>
  agentAt: (socketPath: string) => Pick<Agent, 'exec' | 'files'>
  /** Where the files of definitions are kept. */
  contexts: ContextStore
  timeoutMs?: number
}

const prefix = 'build-'
const GiB = 1024 ** 3
/** No sandbox of a person has such an id. */
export const isBuildId = (sandboxId: string): boolean => sandboxId.startsWith(prefix)

const size = { cpu: 2, memoryGiB: 2 }
const standardTimeoutMs = 30 * 60_000
/** Of the output of a step that failed; what came before is not for a sentence. */
const longestTail = 1200

const assignmentOf = ({ image, maxGiB }: BuildRequest): Assignment => ({
  sandboxId: `${prefix}${createHash('sha256').update(image).digest('hex').slice(0, 24)}`,
  organizationId: '',
  regionId: '',
  name: 'build',
  generation: 1,
  target: 'started',
  signal: 'SIGKILL',
  image,
  snapshot: image,
  user: 'root',
  env: {},
  language: 'python',
  ...size,
  diskGiB: maxGiB,
  network: { blockAll: false, allowList: null },
  isNew: true,
})

export class ImageBuilder {
  readonly #host: BuilderParts['host']
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

  /** The template of this name is whole when this resolves; what was there by that name before is gone. */
  async build(request: BuildRequest): Promise<void> {
    const assignment = assignmentOf(request)
    const { sandboxId } = assignment
    const { image, steps, contexts: of, maxGiB, signal, onProgress, onText = () => {} } = request
    signal.throwIfAborted()
    await this.#host.destroy(sandboxId)
    await this.#host.removeTemplate(image)
    const late = AbortSignal.timeout(this.#timeoutMs)
    const until = AbortSignal.any([signal, late])
    // What runs in it may have seen to it that its agent never answers: then only its end lets go of whoever waits for that.
    const giveUp = () => void this.#host.destroy(sandboxId).catch(() => {})
    until.addEventListener('abort', giveUp, { once: true })
    try {
      const mostBytes = maxGiB * GiB
      const copier = of && (await Copier.open({ contexts: this.#contexts, of, mostBytes, signal: until }))
      await this.#host.start(assignment)
      for (const [index, step] of steps.entries()) {
        onProgress({ step: `line ${step.line}`, percent: Math.floor((index / steps.length) * 100) })
        if ('argv' in step) await this.#run(sandboxId, step, until, onText)
        else await this.#copy(sandboxId, step, copier, until, onText)
      }
      await this.#host.stop({ ...assignment, generation: 2, target: 'stopped' })
      await this.#host.snapshot(sandboxId, image)
    } catch (error) {
      signal.throwIfAborted()
      if (late.aborted) throw new ImageFailed('took-too-long', 'The build took too long.', { cause: error })
      throw error
    } finally {
      until.removeEventListener('abort', giveUp)
      await this.#host.destroy(sandboxId)
    }
  }

  async #copy(
    sandboxId: string,
    { line, text, copy }: CopyStep,
    copier: Copier | undefined,
    signal: AbortSignal,
    onText: (text: string) => void,
  ): Promise<void> {
    const held = this.#host.get(sandboxId)
    if (copier === undefined || held?.status !== 'started')
      throw new ImageFailed('build-failed', `Line ${line}: the sandbox of the build has ended`)
    signal.throwIfAborted()
    onText(`Line ${line}: ${text}\n`)
    try {
      onText(`${await copier.copy(copy, this.#agentAt(held.socketPath).files('0'))}\n`)
    } catch (error) {
      signal.throwIfAborted()
      if (error instanceof ImageFailed)
        throw new ImageFailed(error.failure, `Line ${line}: ${error.message}`, { cause: error.cause })
      throw new ImageFailed('build-failed', `Line ${line}: the sandbox of the build has ended`, { cause: error })
    }
  }

  async #run(
    sandboxId: string,
    { line, argv, env, user, workdir }: RunStep,
    signal: AbortSignal,
    onText: (text: string) => void,
  ): Promise<void> {
    const fail = (why: string, cause?: unknown) =>
      new ImageFailed('build-failed', `Line ${line}: ${why}`, { cause: cause })
    const held = this.#host.get(sandboxId)
    if (held?.status !== 'started') throw fail('the sandbox of the build has ended')
    signal.throwIfAborted()
    // The group of a user is for the image's own files to say.
    const [name = ''] = user.split(':')
    const spec = { argv, env, cwd: workdir, user: name === '' || name === 'root' ? '0' : name, mergeOutput: true }
    const command = await this.#agentAt(held.socketPath)
      .exec(spec)
      .catch((error: unknown) => {
        if (error instanceof StartFailed) throw fail(`${sentences[error.stage]} (${error.errno})`, error)
        throw fail('the sandbox of the build does not answer', error)
      })
    const giveUp = () => command.close()
    signal.addEventListener('abort', giveUp, { once: true })
    try {
      onText(`Line ${line}: ${argv.at(-1)}\n`)
      const decoder = new StringDecoder('utf8')
      let tail = Buffer.alloc(0)
      for await (const { data } of command) {
        onText(decoder.write(data))
        tail = Buffer.concat([tail, data]).subarray(-longestTail)
      }
      onText(decoder.end())
      const { exitCode } = await command.exit
      signal.throwIfAborted()
      if (exitCode !== 0) throw fail(`exit code ${exitCode}${saidBefore(tail)}`)
    } catch (error) {
      signal.throwIfAborted()
      throw error instanceof ImageFailed ? error : fail('the sandbox of the build has ended', error)
    } finally {
      signal.removeEventListener('abort', giveUp)
    }
  }
}

const sentences = {
  user: 'there is no such user in the image',
  cwd: 'its directory cannot be entered',
  exec: 'its program cannot be run',
}

const saidBefore = (tail: Buffer): string => {
  const text = tail.toString('utf8').trim()
  return text === '' ? '' : `\n${text}`
}
