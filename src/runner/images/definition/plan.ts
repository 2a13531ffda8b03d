// Plans the build of a definition: the stages that the last stage needs, in order, and the steps and configuration of each. An
// unsupported instruction is refused, and the error names the instruction's line.
import type { ContainerConfig } from '../manifest.ts'
import { type At, type Instruction, instructionsOf, refuse } from './instructions.ts'
import { baseOf, checkPlatform, isOnStage, type Origin, originOf, platformArgs } from './origins.ts'
import { argsIn, type BuildStep, checkKnown, mostExpanded, runStage, words } from './stage.ts'

export type { CopyStep } from './copy.ts'
export type { Mount } from './mounts.ts'
export { isOnStage, type Origin } from './origins.ts'
export type { BuildStep, DirectoryStep, RunStep } from './stage.ts'

export type Stage = {
  /** Position of the stage in the definition, counted from 0. */
  index: number
  /** The stage's name: the word after `AS`. */
  name?: string | undefined
  line: number
  from: Origin | 'scratch'
  /** Returns the steps of this stage and the configuration of its result. `base`: configuration of the stage's base image. */
  on(base: ContainerConfig): { steps: BuildStep[]; config: ContainerConfig }
}

export type Plan = {
  /** Each stage comes after the stages that it needs. The last stage becomes the image. */
  stages: readonly [...Stage[], Stage]
  /**
   * Plans the build again. `bases`: the configuration of each base image fetched so far, by the index of its stage. ONBUILD
   * triggers of these base images may need other stages. An invalid trigger is refused, like an invalid line of the definition.
   */
  with(bases: Bases): Plan
}

type Bases = ReadonlyMap<number, ContainerConfig>

type Written = {
  index: number
  from: Instruction
  base: Origin | 'scratch'
  name: string | undefined
  body: Instruction[]
}

/** Maximum number of stages of a definition. A build may have sandboxes for all stages at the same time. */
const mostStages = 20

const refuseSoMany = (at: At) =>
  refuse(at, `the last stage needs more than ${mostStages} stages and images`, 'combine some of the stages')

export const emptyConfig = (): ContainerConfig => ({ entrypoint: [], cmd: [], env: {}, user: '', workdir: '' })

/** Placeholder for a value that the base image may set. The placeholder is valid as a number, a name, a path and a file mode. */
const anything = '755'

/** Plans the build of `text`. `hasFiles`: the caller sent files. `snapshots`: names in FROM that are no images. */
export const planOf = (text: string, hasFiles = false, snapshots: ReadonlySet<string> = new Set()): Plan => {
  const { instructions, escapedBy } = instructionsOf(text)
  const start = instructions.findIndex(({ name }) => name === 'FROM')
  if (start === -1) return refuse({ line: 1 }, 'there is no FROM', 'write FROM IMAGE first, such as FROM default')
  const allowance = { left: mostExpanded }
  const globals: Record<string, string> = { ...platformArgs }
  for (const instruction of instructions.slice(0, start)) {
    if (instruction.name !== 'ARG')
      refuse(instruction, 'only ARG may come before FROM', 'move this line below the first FROM')
    Object.assign(globals, argsIn(instruction, { variables: globals, escapedBy, allowance }, globals))
  }
  const written = stagesIn(instructions.slice(start), (instruction, stages) =>
    readFrom(instruction, stages, snapshots, { variables: globals, escapedBy, allowance }),
  )
  const run: Run = ({ index, from, base: below, body }, base, unset) => {
    const origins: NamedOrigin[] = []
    const ran = runStage({ line: from.line, base: textOf(below) }, body, base, {
      globals,
      reading: { escapedBy, allowance: { ...allowance }, ...(unset === undefined ? {} : { unset }) },
      hasFiles,
      originOf: (at, name) => {
        const origin = originOf(at, name, written, index, snapshots)
        origins.push({ at, origin })
        return origin
      },
    })
    return { ...ran, origins }
  }
  /** The last run of each stage. For each newly fetched base, the plan is made again, although most stages have not changed. */
  const runs = new Map<number, { base: ContainerConfig; unset: string | undefined; ran: ReturnType<Run> }>()
  const runOnce: Run = (stage, base, unset) => {
    const last = runs.get(stage.index)
    if (last !== undefined && last.base === base && last.unset === unset) return last.ran
    const ran = run(stage, base, unset)
    runs.set(stage.index, { base, unset, ran })
    return ran
  }
  const planWith = (bases: Bases): Plan => {
    const order = orderOf(written, runOnce, bases)
    const needed = order.length + new Set(order.flatMap(({ origins }) => origins.flatMap(imagesOf))).size
    // A fetched base may belong to a stage that is no longer needed. It counts too, because it stays until the build ends.
    const missing = order.filter(({ index, base }) => base !== 'scratch' && 'image' in base && !bases.has(index))
    if (Math.max(needed, bases.size + missing.length) > mostStages) refuseSoMany(order.at(-1)?.from ?? { line: 1 })
    const stages = order.map((stage) => ({
      ...{ index: stage.index, name: stage.name, line: stage.from.line, from: stage.base },
      on: (base: ContainerConfig) => {
        const { steps, config } = runOnce(stage, base)
        return { steps, config }
      },
    }))
    return { stages: stages as unknown as Plan['stages'], with: planWith }
  }
  return planWith(new Map())
}

const stagesIn = (
  instructions: readonly Instruction[],
  read: (from: Instruction, before: readonly Written[]) => Pick<Written, 'base' | 'name'>,
): Written[] => {
  const stages: Written[] = []
  for (const instruction of instructions) {
    if (instruction.name === 'FROM') {
      const index = stages.length
      stages.push({ index, from: instruction, body: [], ...read(instruction, stages) })
    } else {
      checkKnown(instruction)
      stages.at(-1)?.body.push(instruction)
    }
  }
  return stages
}

const readFrom = (
  instruction: Instruction,
  before: readonly Written[],
  snapshots: ReadonlySet<string>,
  reading: Parameters<typeof words>[1],
): Pick<Written, 'base' | 'name'> => {
  const { flags } = instruction
  for (const flag of flags) {
    const [, key = flag, value = ''] = /^--([a-z]+)=(.*)$/s.exec(flag) ?? []
    if (key !== 'platform') refuse(instruction, `${flag.slice(0, 40)} is not supported`, 'leave it out')
    checkPlatform(instruction, words({ ...instruction, rest: value }, reading, false).join(''))
  }
  const [image, ...more] = words(instruction, reading)
  if (image === undefined || image === '')
    return refuse(
      instruction,
      'it names no image',
      'write FROM IMAGE, and ARG NAME=value above it for each variable in IMAGE',
    )
  const [as, name, ...others] = more
  if (as !== undefined && (as.toUpperCase() !== 'AS' || name === undefined || others.length > 0))
    return refuse(instruction, 'it takes one image', 'write FROM IMAGE or FROM IMAGE AS NAME')
  if (name !== undefined && !/^[a-z][\w.-]*$/i.test(name))
    return refuse(
      instruction,
      `"${name.slice(0, 40)}" is not a valid stage name`,
      'write a letter, and then only letters, digits and . _ -',
    )
  return { base: baseOf(instruction, image, before, snapshots), name: name?.toLowerCase() }
}

/** A stage or image from which a stage copies or mounts files. `at`: the line or trigger that names it. */
type NamedOrigin = { at: At; origin: Origin }

type Run = (
  stage: Written,
  base: ContainerConfig,
  unset?: string,
) => { steps: BuildStep[]; config: ContainerConfig; origins: NamedOrigin[] }

/**
 * Refuses stages that need each other in a circle. The error names an ONBUILD trigger of the circle. If there is none, the error
 * names the line `closing`.
 */
const refuseCircle = (closing: At, others: readonly At[]): never => {
  const why = 'stages need each other in a circle'
  const at = [closing, ...others].find(({ trigger }) => trigger !== undefined)
  if (at === undefined) return refuse(closing, why, 'remove one --from, or split a stage in two')
  return refuse(at, why, 'remove one --from, or build on another image')
}

/**
 * Returns the last stage and all stages that it needs, in build order. Checks the lines of all these stages, and the triggers of
 * the base images that are in `bases`.
 */
const orderOf = (stages: readonly Written[], run: Run, bases: Bases): (Written & { origins: NamedOrigin[] })[] => {
  const order: (Written & { origins: NamedOrigin[] })[] = []
  /**
   * The configuration of each checked stage. `unset`: placeholder value for each variable that no line sets, because the base image
   * may set the variable.
   */
  const configs = new Map<number, { config: ContainerConfig; unset: string | undefined }>()
  const onTheWay: { index: number; at: At }[] = []
  const visit = (index: number, at: At): { config: ContainerConfig; unset: string | undefined } => {
    const known = configs.get(index)
    if (known !== undefined) return known
    const stage = stages[index] as Written
    const before = onTheWay.findIndex((each) => each.index === index)
    if (before !== -1)
      return refuseCircle(
        at,
        onTheWay.slice(before + 1).map((each) => each.at),
      )
    onTheWay.push({ index, at })
    if (configs.size + onTheWay.length > mostStages) refuseSoMany(stage.from)
    const { base } = stage
    const isKnown = base === 'scratch' || bases.has(index)
    const below = isOnStage(base)
      ? visit(base.stage, stage.from)
      : { config: bases.get(index) ?? emptyConfig(), unset: isKnown ? undefined : anything }
    const { config, origins } = run(stage, below.config, below.unset)
    for (const { origin, at } of origins) if ('stage' in origin) visit(origin.stage, at)
    onTheWay.pop()
    const found = { config, unset: below.unset }
    configs.set(index, found)
    order.push({ ...stage, origins })
    return found
  }
  const last = stages.at(-1) as Written
  visit(last.index, last.from)
  return order
}

const imagesOf = ({ origin }: NamedOrigin) => ('image' in origin ? [origin.image] : [])

const textOf = (base: Origin | 'scratch'): string => {
  if (base === 'scratch') return base
  return 'stage' in base ? `stage ${base.stage}` : base.image
}

/** Returns the stages of the Dockerfile, and the images, from which a step takes files. */
export const originsOf = (step: BuildStep): Origin[] => {
  if ('copy' in step) return step.copy.from === undefined ? [] : [step.copy.from]
  if (!('argv' in step)) return []
  return (step.mounts ?? []).flatMap((mount) => ('from' in mount && mount.from ? [mount.from] : []))
}
