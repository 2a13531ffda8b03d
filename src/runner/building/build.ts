// Builds one definition: the needed stages, after `survey.ts` has found their base images and cached lines. Independent stages
// are built at the same time.
import { FairQueue } from '#src/kit/queue.ts'
import type { CopySource } from '#src/runner/copying/source.ts'
import { type BuildStep, isOnStage, type Origin, originsOf, type Stage } from '#src/runner/images/definition/plan.ts'
import { failedAt, ImageFailed } from '#src/runner/images/image-failed.ts'
import { asSize } from '#src/runner/images/limits.ts'
import type { ContainerConfig } from '#src/runner/images/manifest.ts'
import type { BaseSource, BuildRequest } from './image-builder.ts'
import type { LineCache } from './line-cache.ts'
import { perform, removeOwn, sourceOfPlace } from './perform.ts'
import { StageLog } from './stage-log.ts'
import { type Looked, type OwnLines, Survey, stageName } from './survey.ts'
import { type BuildAgent, type BuildHost, Workplace } from './workplace.ts'

const GiB = 1024 ** 3
/** Maximum number of lines of the Dockerfile that one build runs at the same time. */
const linesAtOnce = 2
/** Maximum size of the disks of all stages together, as a multiple of the image's maximum size. */
const shareOfStages = 3

export type BuildParts = {
  host: BuildHost
  agentAt: (socketPath: string) => BuildAgent
  lines: LineCache | undefined
  /** The files that the caller sent with the definition. */
  files: CopySource | undefined
}

type Run = { ended: Promise<void>; isOver: boolean }

const keyOf = (origin: Origin): string => ('stage' in origin ? `stage ${origin.stage}` : origin.image)

export class Build {
  readonly #request: BuildRequest
  readonly #parts: BuildParts
  readonly #failing = new AbortController()
  readonly #signal: AbortSignal
  readonly #lanes = new FairQueue({ atOnce: linesAtOnce })
  readonly #runs = new Map<number, Run>()
  readonly #places = new Map<string, Workplace>()
  readonly #opening = new Map<string, Promise<void>>()
  readonly #survey: Survey
  readonly #own: OwnLines | undefined
  /** Names of templates that this build has made and removes at its end. */
  readonly #templates: string[] = []
  #failure: { error: unknown } | undefined

  constructor(request: BuildRequest, parts: BuildParts) {
    this.#request = request
    this.#parts = parts
    this.#signal = AbortSignal.any([request.signal, this.#failing.signal])
    const { lines, files } = parts
    const { organizationId } = request
    this.#own = lines?.isUseful && organizationId !== undefined ? { lines, organizationId } : undefined
    this.#survey = new Survey({
      ...{ request, own: this.#own, files, signal: this.#signal },
      onKept: (looked) => this.#sayKept(looked),
    })
  }

  async run(): Promise<ContainerConfig> {
    await this.#parts.host.removeTemplate(this.#request.image)
    await this.#fetchBases()
    const { plan } = this.#survey
    await this.#untilFailure(plan.stages.map(({ index }) => this.#survey.look(index)))
    const last = this.#survey.get((plan.stages.at(-1) as Stage).index)
    if (addsNothing(last, this.#survey.sourceOf(last.stage))) return last.config
    this.#start(last)
    await this.#untilFailure([...this.#runs.values()].map(({ ended }) => ended))
    return last.config
  }

  /** Fetches the base images of all stages, also of stages that only ONBUILD triggers of other base images need. */
  async #fetchBases(): Promise<void> {
    const survey = this.#survey
    for (let stages = survey.stagesWithoutBase(); stages.length > 0; stages = survey.stagesWithoutBase()) {
      await this.#untilFailure(stages.map((stage) => survey.fetchBase(stage)))
      survey.planAgain()
    }
  }

  async destroyPlaces(): Promise<void> {
    await runAll([...this.#places.values()].map((place) => () => place.destroy()))
  }

  async clear(): Promise<void> {
    const { host } = this.#parts
    const steps = [
      () => this.destroyPlaces(),
      ...this.#templates.map((template) => () => host.removeTemplate(template)),
      ...this.#survey.bases.map((base) => () => this.#request.removeBase(base)),
    ]
    try {
      await runAll(steps)
    } finally {
      this.#survey.release()
    }
  }

  /** Waits until all stages of the Dockerfile have ended. If a stage fails, cancels the others and throws its error. */
  async #untilFailure(all: readonly Promise<unknown>[]): Promise<void> {
    const fail = (error: unknown) => {
      if (this.#failure !== undefined) return
      this.#failure = { error }
      this.#failing.abort(error)
      void this.destroyPlaces().catch(() => {})
    }
    await Promise.all(all.map((each) => each.catch(fail)))
    if (this.#failure !== undefined) throw this.#failure.error
  }

  /**
   * Builds a stage after the stages that it needs. These stages do not wait for each other, because the plan has no circles: it
   * includes the ONBUILD triggers of base images.
   */
  #start(looked: Looked): Promise<void> {
    const { index } = looked.stage
    const known = this.#runs.get(index)
    if (known !== undefined) return known.ended
    const needed = this.#stagesNeeded(looked).map((each) => this.#start(each))
    const run: Run = { ended: this.#runStage(looked), isOver: false }
    for (const each of [...needed, run.ended]) each.catch(() => {})
    this.#runs.set(index, run)
    run.ended = run.ended.then(async () => {
      run.isOver = true
      await this.#destroyUnneeded()
    })
    return run.ended
  }

  #stagesNeeded(looked: Looked): Looked[] {
    const taken = originsLeft(looked).flatMap((origin) => ('stage' in origin ? [origin.stage] : []))
    const below = this.#below(looked)
    const parents = below !== undefined && isToRun(below) ? [below] : []
    return [...parents, ...taken.map((index) => this.#survey.get(index))]
  }

  /** Returns the stage on whose disk this stage is built. Undefined if this stage is built on an image or on a cached line. */
  #below({ stage, from }: Looked): Looked | undefined {
    if (from !== undefined || !isOnStage(stage.from)) return undefined
    const below = this.#survey.get(stage.from.stage)
    return isToRun(below) || below.from !== undefined ? below : this.#below(below)
  }

  /** Returns the template or image from which the disk of a stage of the Dockerfile is made. */
  async #diskOf(looked: Looked): Promise<string> {
    if (looked.from !== undefined) return looked.from
    const below = this.#below(looked) as Looked
    if (!isToRun(below)) return below.from as string
    await this.#start(below)
    return this.#templateOf(below.stage)
  }

  #templateOf({ index }: Stage): string {
    return stageName(this.#request.image, `${index}.disk`)
  }

  async #runStage(looked: Looked): Promise<void> {
    const { stage, steps } = looked
    const { plan } = this.#survey
    const log = this.#logOf(stage)
    const from = await this.#diskOf(looked)
    if (plan.stages.length > 1) log.add(`Stage ${stage.index}, from line ${stage.line}\n`)
    const place = await this.#lanes.run(() => this.#open(keyOf({ stage: stage.index }), from), { signal: this.#signal })
    if (looked.kept === 0) looked.keptKey = this.#survey.keptKeyBefore(looked)
    let key = looked.kept === 0 ? this.#survey.keyBefore(looked) : looked.keys[looked.kept - 1]
    for (const step of steps.slice(looked.kept)) {
      const fetched = await this.#performIn(place, step, log)
      key = await this.#survey.keyAfterRun(looked, key, step, fetched)
      looked.done += 1
      if (key !== undefined && isWorthKeeping(step)) await this.#keep(looked, place, key)
    }
    looked.lastKey = key
    await this.#checkSize()
    await this.#keepDisk(looked, place)
  }

  async #performIn(place: Workplace, step: BuildStep, log: StageLog): Promise<string[]> {
    const { withWebFile, withRepository } = this.#request
    this.#signal.throwIfAborted()
    try {
      for (const origin of originsOf(step)) await this.#ready(origin)
      return await this.#lanes.run(
        () => {
          this.#sayProgress(step)
          return perform(place, step, {
            ...{ log, withWebFile, withRepository, ...this.#bounds() },
            sourceOf: (origin) => this.#filesOf(origin),
          })
        },
        { signal: this.#signal },
      )
    } catch (error) {
      this.#signal.throwIfAborted()
      const failure =
        error instanceof ImageFailed
          ? error
          : new ImageFailed('build-failed', 'the sandbox of the build has ended', { cause: error })
      throw failedAt(`Line ${step.line}`, failure)
    } finally {
      log.end()
    }
  }

  #sayProgress({ line }: BuildStep): void {
    const all = this.#survey.all()
    const done = all.reduce((sum, each) => sum + each.done, 0)
    const total = all.reduce((sum, each) => sum + each.steps.length, 0)
    this.#request.onProgress({ step: `line ${line}`, percent: Math.floor((done / total) * 100) })
  }

  async #keep(looked: Looked, place: Workplace, key: string): Promise<void> {
    if (this.#own === undefined) return
    const { lines, organizationId } = this.#own
    const { image, files } = looked.base
    const isKept = await lines.keep({
      ...{ organizationId, key, image, files, sandboxId: place.id, signal: this.#signal },
      before: looked.keptKey,
    })
    if (isKept) looked.keptKey = key
  }

  /**
   * Makes the image from the last stage's disk. From another stage's disk, makes a template if a later stage is built on that
   * stage.
   */
  async #keepDisk({ stage }: Looked, place: Workplace): Promise<void> {
    const { image } = this.#request
    if (stage === this.#survey.plan.stages.at(-1)) {
      // The image must not contain the directory in which the build keeps cache mounts and scripts.
      await removeOwn(place)
      await place.stop()
      await place.snapshot(image, image)
      return
    }
    const isBase = this.#survey.all().some((each) => this.#below(each)?.stage === stage)
    if (!isBase) return
    const template = this.#templateOf(stage)
    await this.#parts.host.removeTemplate(template)
    this.#templates.push(template)
    await place.snapshot(template)
  }

  async #destroyUnneeded(): Promise<void> {
    const left = [...this.#runs].filter(([, { isOver }]) => !isOver).map(([index]) => this.#survey.get(index))
    const needed = new Set(left.flatMap((each) => [{ stage: each.stage.index }, ...originsLeft(each)]).map(keyOf))
    for (const [key, place] of this.#places) {
      if (needed.has(key)) continue
      this.#places.delete(key)
      await place.destroy()
    }
  }

  #bounds() {
    return { mostBytes: this.#request.maxGiB * GiB, signal: this.#signal }
  }

  async #open(key: string, from: string): Promise<Workplace> {
    const { image, maxGiB } = this.#request
    const { host, agentAt } = this.#parts
    this.#signal.throwIfAborted()
    const place = new Workplace({ host, agentAt, from, key: `${image} ${key}`, maxGiB })
    this.#places.set(key, place)
    await place.start()
    return place
  }

  /** Resolves when the files of this stage of the Dockerfile, or of this image, can be copied. */
  async #ready(origin: Origin): Promise<void> {
    if ('stage' in origin) return this.#start(this.#survey.get(origin.stage))
    const key = keyOf(origin)
    let opening = this.#opening.get(key)
    if (opening === undefined) {
      opening = this.#openImage(origin.image)
      this.#opening.set(key, opening)
    }
    return opening
  }

  /** Makes a sandbox from an image from which only files are copied. No line runs in it. */
  async #openImage(named: string): Promise<void> {
    const { bases } = this.#survey
    const name = stageName(this.#request.image, `from-${bases.length}`)
    bases.push(name)
    const source = this.#survey.sourceNamed(named)
    const reference = await this.#survey.pinned(named)
    await this.#request
      .bringBase(name, source.kind === 'image' ? source : { kind: 'registry', reference }, this.#signal)
      .catch((error: unknown) => {
        throw failedAt(`from=${named}`, error)
      })
    await this.#open(named, source.kind === 'image' ? source.image : name)
  }

  #filesOf(origin: Origin | undefined): CopySource {
    if (origin === undefined) {
      if (this.#parts.files === undefined)
        throw new ImageFailed('unsupported', 'this line needs files, but no files were sent with the definition')
      return this.#parts.files
    }
    const place = this.#places.get(keyOf(origin))
    if (place === undefined)
      throw new ImageFailed('unsupported', 'this line takes files from a stage that is not built')
    const name = 'stage' in origin ? `in stage ${origin.stage}` : `in ${origin.image}`
    return sourceOfPlace(place, name, this.#signal)
  }

  #sayKept({ stage, steps, kept }: Looked): void {
    const log = this.#logOf(stage)
    for (const step of steps.slice(0, kept)) log.add(`Line ${step.line}: cached: ${textOf(step)}\n`)
  }

  #logOf({ index, name }: Stage): StageLog {
    const { onText = () => {} } = this.#request
    return new StageLog(this.#survey.plan.stages.length > 1 ? `[${name ?? index}] ` : '', onText)
  }

  /** Throws if the disks of all stages of the Dockerfile together exceed the limit for a build. */
  async #checkSize(): Promise<void> {
    const sizes = await Promise.all([...this.#places.values()].map((place) => place.diskUsed()))
    const bytes = sizes.reduce((sum, each) => sum + each, 0)
    const most = shareOfStages * this.#request.maxGiB * GiB
    if (bytes > most)
      throw new ImageFailed(
        'too-large',
        `The stages of the definition use ${asSize(bytes)} of disk together; at most ${asSize(most)} is allowed.`,
      )
  }
}

/** Runs all steps one after the other, even after a failure. Then throws the first error. */
const runAll = async (steps: readonly (() => Promise<void>)[]): Promise<void> => {
  const failures: unknown[] = []
  for (const step of steps) await step().catch((error: unknown) => failures.push(error))
  if (failures.length > 0) throw failures[0]
}

const isToRun = ({ steps, kept }: Looked): boolean => kept < steps.length

const originsLeft = ({ steps, done }: Looked): Origin[] => steps.slice(done).flatMap(originsOf)

const isWorthKeeping = (step: BuildStep): boolean => 'argv' in step || 'copy' in step

const addsNothing = ({ steps }: Looked, source: BaseSource | undefined): boolean =>
  steps.length === 0 && source !== undefined && source.kind !== 'image'

const textOf = (step: BuildStep): string => {
  if ('copy' in step) return step.text
  return 'argv' in step ? `RUN ${step.script ?? step.argv.at(-1)}` : `WORKDIR ${step.directory}`
}
