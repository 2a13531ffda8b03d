// Interprets one stage of a definition: how its instructions change the configuration of the base image, and which steps run.
import { posix } from 'node:path'
import { imageConfigBounds } from '#src/wire/runner-link.ts'
import { ImageFailed } from '../image-failed.ts'
import { type ContainerConfig, checkConfig } from '../manifest.ts'
import { type CopyStep, copyIn } from './copy.ts'
import { isOnlyDocument } from './here-documents.ts'
import {
  type At,
  type AtInstruction,
  type Instruction,
  instructionsOf,
  jsonListIn,
  noInstruction,
  refuse,
} from './instructions.ts'
import { type Mount, mountOf } from './mounts.ts'
import { type Origin, refuseVariable } from './origins.ts'
import { linesWith, type Reading, type Variables, WordError, wordsOf } from './words.ts'

/** A RUN line, with the user, directory and variables that apply at that line. */
export type RunStep = {
  line: number
  argv: string[]
  env: Record<string, string>
  user: string
  workdir: string
  mounts?: Mount[]
  /** The command runs without a network. */
  isOffline?: true
  /**
   * Script of a RUN with a here-document. The builder writes the script into the sandbox, and runs the script instead of `argv`.
   */
  script?: string
}

/** A WORKDIR line. The builder creates the directory. */
export type DirectoryStep = { line: number; directory: string }

export type BuildStep = RunStep | CopyStep | DirectoryStep

/** What comes from outside of a stage: ARGs before the first FROM, the caller's files, and what `--from` names. */
export type Surroundings = {
  globals: Variables
  reading: Omit<Reading, 'variables'>
  /** True if the caller sent files with the definition. Without such files, COPY and ADD of the caller's files are refused. */
  hasFiles: boolean
  originOf: (at: At, text: string) => Origin
}

type State = Surroundings & {
  config: ContainerConfig
  args: Record<string, string>
  steps: BuildStep[]
  /** Total length of the variables of all steps of this stage so far, in characters. */
  stepCharacters: number
  /** Whether this stage has set CMD so far. A new ENTRYPOINT clears only a CMD that the image or stage in FROM has set. */
  hasOwnCmd: boolean
}

/** Maximum number of characters that variables may expand to in one definition. Each insertion of a value adds its length. */
export const mostExpanded = 1024 * 1024
/** Maximum number of variables of ARG and ENV together. The limit exists because each step has a copy of all variables. */
const mostVariables = 1000
/**
 * Maximum number of characters in the variables of all steps together. Each step stores a copy of the variables until it has
 * run.
 */
const mostStepCharacters = 4 * 1024 * 1024
const mostTriggers = 100

/** The PATH of an image whose configuration has no PATH. Docker's builder uses the same default. */
const standardPath = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

/**
 * Instructions that are accepted but have no effect. They change no files, and sandboxes do not use the settings that these
 * instructions make.
 */
const withoutEffect = ['LABEL', 'EXPOSE', 'MAINTAINER', 'STOPSIGNAL', 'HEALTHCHECK', 'VOLUME']

export const checkKnown = ({ line, name, trigger }: AtInstruction): void => {
  if (!Object.hasOwn(verbs, name) && !withoutEffect.includes(name))
    refuse({ line, trigger }, `${name} is no instruction`, noInstruction)
}

/**
 * Interprets the ONBUILD triggers of the base image, and then the stage's lines. `from`: line number of FROM, and the base image or
 * stage; errors of triggers name both.
 */
export const runStage = (
  from: { line: number; base: string },
  body: readonly Instruction[],
  base: ContainerConfig,
  surroundings: Surroundings,
): { steps: BuildStep[]; config: ContainerConfig } => {
  const { onbuild = [], ...config } = structuredClone(base)
  if (onbuild.length > mostTriggers)
    refuse(from, `${from.base} has more than ${mostTriggers} ONBUILD triggers`, 'build on another image')
  config.env['PATH'] ??= standardPath
  const state: State = { ...surroundings, config, args: {}, steps: [], stepCharacters: 0, hasOwnCmd: false }
  for (const text of onbuild) {
    const at = { line: from.line, trigger: triggerText(text, from.base) }
    perform({ ...triggerIn(at, text), ...at }, state)
  }
  for (const instruction of body) perform(instruction, state)
  return { steps: state.steps, config: state.config }
}

/** Instructions that add to the image's configuration. After each such instruction, the size of the configuration is checked. */
const sayMore = ['ENV', 'CMD', 'ENTRYPOINT', 'SHELL', 'ONBUILD']

const perform = (instruction: Instruction, state: State) => {
  verbs[instruction.name]?.(instruction, state)
  if (!sayMore.includes(instruction.name)) return
  try {
    checkConfig(state.config)
  } catch (error) {
    if (!(error instanceof ImageFailed)) throw error
    refuse(instruction, error.message.replace(/\.$/, ''), 'put long texts into a file and COPY the file')
  }
}

/** Returns how errors name a trigger of `base`. Contains the trigger's text only up to the first control character. */
const triggerText = (text: string, base: string) =>
  `ONBUILD ${text.replace(/\p{Cc}.*$/su, '').slice(0, 80)} of ${base.slice(0, 100)}`

/** Parses the instruction after ONBUILD. Throws if that instruction is not allowed after ONBUILD. */
const triggerIn = (at: At, text: string): Instruction => {
  const [trigger, ...more] = instructionsOf(text).instructions
  if (trigger === undefined || more.length > 0)
    return refuse(at, 'ONBUILD needs exactly one instruction', 'write for example ONBUILD RUN make')
  if (['FROM', 'ONBUILD', 'MAINTAINER'].includes(trigger.name))
    return refuse(
      at,
      `ONBUILD ${trigger.name} is not allowed`,
      `write ${trigger.name} in the definition that builds on this image`,
    )
  checkKnown({ ...at, name: trigger.name })
  return trigger
}

/** Calls `read` and returns its result. If `read` throws a WordError, throws an error that tells the user the line. */
const refusing = <T>(at: At, read: () => T): T => {
  try {
    return read()
  } catch (error) {
    if (!(error instanceof WordError)) throw error
    return refuse(at, error.message, error.instead)
  }
}

export const words = (at: At & { rest: string }, reading: Reading, splits = true): string[] =>
  refusing(at, () => wordsOf(at.rest, reading, splits))

const variablesIn = ({ config, args }: State, at: At): Record<string, string> => {
  const count = Object.keys(args).length + Object.keys(config.env).length
  return count > mostVariables
    ? refuse(at, `there are more than ${mostVariables} variables`, 'write them into a file and COPY it')
    : { ...args, ...config.env }
}

/** Returns a copy of all variables for one more step. Throws if the copies of all steps together are too long. */
const stepVariablesIn = (state: State, at: At): Record<string, string> => {
  const variables = variablesIn(state, at)
  for (const text of Object.entries(variables).flat()) state.stepCharacters += text.length
  if (state.stepCharacters > mostStepCharacters)
    refuse(at, 'there are too many RUN lines for variables as long as these', 'join RUN commands with &&')
  return variables
}

const readingIn = (state: State, at: At): Reading => ({ ...state.reading, variables: variablesIn(state, at) })

const nameShape = /^[A-Za-z_][\w.-]*$/

const pairsIn = (instruction: Instruction, reading: Reading): [string, string][] => {
  const { name } = instruction
  const found = words(instruction, reading)
  const isOldForm = found[0] !== undefined && !found[0].includes('=')
  if (isOldForm && name === 'ENV') {
    const [, key = '', value = ''] = /^(\S+)\s+(.*)$/s.exec(instruction.rest) ?? []
    if (!nameShape.test(key)) return refuse(instruction, 'it takes names with values', 'write ENV NAME=value')
    return [[key, words({ ...instruction, rest: value }, reading, false).join('')]]
  }
  if (found.length === 0) return refuse(instruction, 'it takes names with values', `write ${name} NAME=value`)
  return found.map((word) => {
    const at = word.indexOf('=')
    if (at <= 0 || !nameShape.test(word.slice(0, at)))
      return refuse(instruction, 'it takes names with values', `write ${name} NAME=value`)
    return [word.slice(0, at), word.slice(at + 1)]
  })
}

/**
 * Returns the names and values of an ARG line. An ARG without a value gets the value of the ARG of that name before the first FROM.
 */
export const argsIn = (instruction: Instruction, reading: Reading, globals: Variables) => {
  const found = words(instruction, reading)
  if (found.length === 0) refuse(instruction, 'it takes a name', 'write ARG NAME or ARG NAME=value')
  const pairs = found.flatMap((word): [string, string][] => {
    const [, name, value = globals[name as string]] = /^([A-Za-z_]\w*)(?:=(.*))?$/s.exec(word) ?? []
    if (name === undefined)
      return refuse(
        instruction,
        `"${word.split('=', 1)[0]?.slice(0, 40)}" is not a valid variable name`,
        'write ARG NAME or ARG NAME=value',
      )
    return value === undefined ? [] : [[name, value]]
  })
  return Object.fromEntries(pairs)
}

const standardShell = ['/bin/sh', '-c']

/** Returns the command of a line: a JSON list is run directly, any other text is passed to the shell. */
const commandIn = ({ rest }: Pick<Instruction, 'rest'>, { config }: State): string[] =>
  jsonListIn(rest) ?? [...(config.shell ?? standardShell), rest]

const oneWord = (instruction: Instruction, state: State): string => {
  const [value = '', ...more] = words(instruction, readingIn(state, instruction), instruction.name !== 'WORKDIR')
  if (value === '' || more.length > 0)
    return refuse(
      instruction,
      'it takes one value',
      `write ${instruction.name} VALUE, with quotes if the value contains spaces`,
    )
  return value
}

type Verb = (instruction: Instruction, state: State) => void

const copy: Verb = (instruction, state) => {
  // The function `readingIn` copies all variables. It is called once per line, and not for each flag or file name.
  const reading = readingIn(state, instruction)
  const step = copyIn(instruction, {
    wordsIn: (rest, splits) => words({ ...instruction, rest }, reading, splits),
    linesIn: (text) => refusing(instruction, () => linesWith(text, reading)),
    originOf: (text) => state.originOf(instruction, text),
    workdir: state.config.workdir,
  })
  if (step.copy.from === undefined && step.copy.sources.length > 0 && !state.hasFiles)
    refuse(
      instruction,
      'this line needs files, but no files were sent with the definition',
      'send the files (contextHashes), or use a here-document',
    )
  state.steps.push(step)
}

/** Returns the command of a RUN line. A line that is only a here-document runs that document as a script. */
const withDocuments = ({ rest, documents }: Instruction, state: State): Pick<RunStep, 'argv' | 'script'> => {
  const [first] = documents
  if (first === undefined) return { argv: commandIn({ rest }, state) }
  const { content } = first
  if (documents.length > 1 || !isOnlyDocument(rest))
    return { argv: commandIn({ rest: `${rest}\n${documents.map(({ raw }) => raw).join('')}` }, state) }
  return content.startsWith('#!')
    ? { argv: [], script: content }
    : { argv: [...(state.config.shell ?? standardShell), content] }
}

const flagsOfRun = (instruction: Instruction, state: State): Pick<RunStep, 'mounts' | 'isOffline'> => {
  const { flags } = instruction
  if (flags.length === 0) return {}
  const reading = readingIn(state, instruction)
  const mounts: Mount[] = []
  let isOffline = false
  for (const flag of flags) {
    const [, key = flag, value = ''] = /^--([a-z-]+)(?:=(.*))?$/s.exec(flag) ?? []
    const [, variable] = key === 'mount' ? (/(?:^|,)from=([^,]*\$[^,]*)/.exec(value) ?? []) : []
    if (variable !== undefined) refuseVariable(instruction, variable)
    const text = words({ ...instruction, rest: value }, reading, false).join('')
    if (key === 'mount') {
      const originOf = (from: string) => state.originOf(instruction, from)
      mounts.push(mountOf(text, { at: instruction, workdir: state.config.workdir, originOf }))
    } else if (key === 'network' && ['default', 'none'].includes(text)) isOffline = text === 'none'
    else if (key === 'network')
      refuse(instruction, `--network=${text.slice(0, 40)} is not allowed`, 'write --network=default or --network=none')
    else if (key !== 'security' || text !== 'sandbox')
      refuse(instruction, `--${key.slice(0, 40)} is not supported`, 'leave it out')
  }
  return { ...(mounts.length > 0 ? { mounts } : {}), ...(isOffline ? { isOffline: true as const } : {}) }
}

const verbs: Record<string, Verb> = {
  ARG: (instruction, state) => {
    Object.assign(state.args, argsIn(instruction, readingIn(state, instruction), state.globals))
  },
  ENV: (instruction, state) => {
    for (const [name, value] of pairsIn(instruction, readingIn(state, instruction))) state.config.env[name] = value
  },
  WORKDIR: (instruction, { config, steps, ...state }) => {
    const { line } = instruction
    config.workdir = posix.resolve('/', config.workdir, oneWord(instruction, { ...state, config, steps }))
    if (config.workdir.length > imageConfigBounds.pathCharacters)
      refuse(instruction, 'it is too long', `write a path of at most ${imageConfigBounds.pathCharacters} characters`)
    steps.push({ line, directory: config.workdir })
  },
  COPY: copy,
  ADD: copy,
  USER: (instruction, state) => {
    state.config.user = oneWord(instruction, state)
    if (state.config.user.length > imageConfigBounds.nameCharacters)
      refuse(instruction, 'it is too long', `write a name of at most ${imageConfigBounds.nameCharacters} characters`)
  },
  SHELL: (instruction, { config }) => {
    const { rest } = instruction
    const shell = jsonListIn(rest)
    if (shell === undefined || shell.length === 0 || shell.length > 100)
      return refuse(
        instruction,
        'SHELL needs a JSON list of 1 to 100 strings',
        'write for example SHELL ["/bin/bash", "-c"]',
      )
    config.shell = shell
  },
  ONBUILD: (instruction, { config }) => {
    const { line, rest, documents } = instruction
    const text = documents.length === 0 ? rest : `${rest}\n${documents.map(({ raw }) => raw).join('')}`
    triggerIn({ line, name: 'ONBUILD' }, text)
    config.onbuild = [...(config.onbuild ?? []), text]
    if (config.onbuild.length > mostTriggers)
      refuse(instruction, `there are more than ${mostTriggers} ONBUILD lines`, 'join RUN commands with &&')
  },
  CMD: (instruction, state) => {
    state.config.cmd = commandIn(instruction, state)
    state.hasOwnCmd = true
  },
  ENTRYPOINT: (instruction, state) => {
    state.config.entrypoint = commandIn(instruction, state)
    if (!state.hasOwnCmd) state.config.cmd = []
  },
  RUN: (instruction, state) => {
    const { line, rest } = instruction
    const flags = flagsOfRun(instruction, state)
    if (rest === '') refuse(instruction, 'RUN needs a command', 'write RUN COMMAND')
    const { user, workdir } = state.config
    const env = stepVariablesIn(state, instruction)
    state.steps.push({ line, ...withDocuments(instruction, state), env, user, workdir: workdir || '/', ...flags })
  },
}
