// What a definition asks for: the image that it builds on, the commands to run on it, and what the result says of itself.
// What is not supported of Dockerfiles is refused by its name.
import { posix } from 'node:path'
import { imageConfigBounds } from '#src/wire/runner-link.ts'
import { type ContainerConfig, checkConfig } from '../manifest.ts'
import { type CopyStep, copyIn } from './copy.ts'
import { type Instruction, instructionsOf, jsonListIn, refuse } from './instructions.ts'
import { type Reading, type Variables, wordsOf } from './words.ts'

/** One RUN, with what is true when it runs; or a WORKDIR, which makes its directory. */
export type RunStep = {
  line: number
  argv: string[]
  env: Record<string, string>
  user: string
  workdir: string
}

export type BuildStep = RunStep | CopyStep

export type { CopyStep }

type Plan = {
  /** The reference of the image to begin with. */
  from: string
  /** What becomes of an image that says this of itself. */
  on(base: ContainerConfig): { steps: BuildStep[]; config: ContainerConfig }
}

type State = {
  config: ContainerConfig
  args: Record<string, string>
  steps: BuildStep[]
  reading: Omit<Reading, 'variables'>
  /** Of the variables of its steps, so far. */
  stepCharacters: number
  /** CMD is forgotten with a new ENTRYPOINT, but not one of the same definition. */
  hasOwnCmd: boolean
}

/** Said about a container that is run in another way than ours; without effect on files. */
const withoutEffect = ['LABEL', 'EXPOSE', 'MAINTAINER', 'STOPSIGNAL', 'HEALTHCHECK', 'VOLUME']

const reasons: Record<string, string> = {
  ONBUILD: 'ONBUILD is not supported',
  SHELL: 'SHELL is not supported',
}

/** More than a command could be given; what a variable is made of counts each time it is put in. */
const mostExpanded = 1024 * 1024
/** Of arguments and environment together: each step has a copy. */
const mostVariables = 1000
/** Of the variables of all steps together: they are written down until the steps are done. */
const mostStepCharacters = 4 * 1024 * 1024

/** `hasFiles`: some came with it, for COPY and ADD. */
export const planOf = (text: string, hasFiles = false): Plan => {
  const { instructions, escapedBy } = instructionsOf(text)
  const start = instructions.findIndex(({ name }) => name === 'FROM')
  if (start === -1) return refuse(1, 'there is no FROM')
  const [from, ...body] = instructions.slice(start) as [Instruction, ...Instruction[]]
  const globals: Record<string, string> = {}
  const allowance = { left: mostExpanded }
  for (const instruction of instructions.slice(0, start)) {
    if (instruction.name !== 'ARG') refuse(instruction.line, 'only ARG may come before FROM')
    Object.assign(globals, argsIn(instruction, { variables: globals, escapedBy, allowance }, {}))
  }
  for (const { line, name } of body) {
    if (name === 'FROM') refuse(line, 'more than one FROM (a build in stages) is not supported')
    if ((name === 'COPY' || name === 'ADD') && !hasFiles)
      refuse(line, `${name} needs files, and none came with the definition`)
    if (!Object.hasOwn(verbs, name) && !withoutEffect.includes(name))
      refuse(line, reasons[name] ?? `${name} is no instruction`)
  }
  const plan: Plan = {
    from: baseOf(from, { variables: globals, escapedBy, allowance }),
    on: (base) => {
      const reading = { escapedBy, allowance: { ...allowance } }
      const state: State = {
        config: structuredClone(base),
        args: {},
        steps: [],
        reading,
        stepCharacters: 0,
        hasOwnCmd: false,
      }
      for (const instruction of body) verbs[instruction.name]?.(instruction, state, globals)
      checkConfig(state.config)
      return { steps: state.steps, config: state.config }
    },
  }
  // What is wrong is said before anything is downloaded.
  plan.on({ entrypoint: [], cmd: [], env: {}, user: '', workdir: '' })
  return plan
}

const words = ({ line, rest }: Instruction, reading: Reading, splits = true): string[] => {
  try {
    return wordsOf(rest, reading, splits)
  } catch (error) {
    return refuse(line, (error as SyntaxError).message)
  }
}

const baseOf = (instruction: Instruction, reading: Reading): string => {
  const [from, ...more] = words(instruction, reading)
  if (from === undefined || from === '') return refuse(instruction.line, 'FROM names no image')
  if (from.startsWith('--')) return refuse(instruction.line, `FROM with ${from.split('=')[0]} is not supported`)
  if (from === 'scratch') return refuse(instruction.line, 'FROM scratch has no files to run anything with')
  if (more.length > 0 && !(more.length === 2 && more[0]?.toUpperCase() === 'AS'))
    return refuse(instruction.line, 'FROM takes one image')
  return from
}

const variablesIn = ({ config, args }: State, line: number): Record<string, string> => {
  const count = Object.keys(args).length + Object.keys(config.env).length
  return count > mostVariables
    ? refuse(line, `there are more than ${mostVariables} variables`)
    : { ...args, ...config.env }
}

/** Of one more step, which has a copy. */
const stepVariablesIn = (state: State, line: number): Record<string, string> => {
  const variables = variablesIn(state, line)
  for (const text of Object.entries(variables).flat()) state.stepCharacters += text.length
  if (state.stepCharacters > mostStepCharacters) refuse(line, 'the lines that run with so many variables are too many')
  return variables
}

const readingIn = (state: State, line: number): Reading => ({ ...state.reading, variables: variablesIn(state, line) })

const nameShape = /^[A-Za-z_][\w.-]*$/

const pairsIn = (instruction: Instruction, reading: Reading): [string, string][] => {
  const { line, name } = instruction
  const found = words(instruction, reading)
  const isOldForm = found[0] !== undefined && !found[0].includes('=')
  if (isOldForm && name === 'ENV') {
    const [, key = '', value = ''] = /^(\S+)\s+(.*)$/s.exec(instruction.rest) ?? []
    if (!nameShape.test(key)) return refuse(line, 'ENV takes NAME=value')
    return [[key, words({ ...instruction, rest: value }, reading, false).join('')]]
  }
  if (found.length === 0) return refuse(line, `${name} takes NAME=value`)
  return found.map((word) => {
    const at = word.indexOf('=')
    if (at <= 0 || !nameShape.test(word.slice(0, at))) return refuse(line, `${name} takes NAME=value`)
    return [word.slice(0, at), word.slice(at + 1)]
  })
}

/** Without a value it is what ARG before FROM said, or nothing. */
const argsIn = (instruction: Instruction, reading: Reading, globals: Variables) => {
  const found = words(instruction, reading)
  if (found.length === 0) refuse(instruction.line, 'ARG takes a name')
  const pairs = found.flatMap((word): [string, string][] => {
    const [, name, value = globals[name as string]] = /^([A-Za-z_]\w*)(?:=(.*))?$/s.exec(word) ?? []
    if (name === undefined) return refuse(instruction.line, 'ARG takes NAME or NAME=value')
    return value === undefined ? [] : [[name, value]]
  })
  return Object.fromEntries(pairs)
}

/** A JSON list as it is, anything else for the shell. */
const commandIn = ({ rest }: Instruction): string[] => jsonListIn(rest) ?? ['/bin/sh', '-c', rest]

const oneWord = (instruction: Instruction, state: State): string => {
  const [value = '', ...more] = words(instruction, readingIn(state, instruction.line), instruction.name !== 'WORKDIR')
  if (value === '' || more.length > 0) return refuse(instruction.line, `${instruction.name} takes one value`)
  return value
}

type Verb = (instruction: Instruction, state: State, globals: Variables) => void

const copy: Verb = (instruction, state) => {
  // Once: it is a copy of all variables, and each flag and each file is read with it.
  const reading = readingIn(state, instruction.line)
  const wordsIn = (rest: string, splits?: boolean) => words({ ...instruction, rest }, reading, splits)
  state.steps.push(copyIn(instruction, state.config.workdir, wordsIn))
}

const verbs: Record<string, Verb> = {
  ARG: (instruction, state, globals) => {
    Object.assign(state.args, argsIn(instruction, readingIn(state, instruction.line), globals))
  },
  ENV: (instruction, state) => {
    for (const [name, value] of pairsIn(instruction, readingIn(state, instruction.line))) state.config.env[name] = value
  },
  WORKDIR: (instruction, state) => {
    const { config, steps } = state
    config.workdir = posix.resolve('/', config.workdir, oneWord(instruction, state))
    if (config.workdir.length > imageConfigBounds.pathCharacters) refuse(instruction.line, 'WORKDIR is too long')
    const argv = ['mkdir', '-p', '--', config.workdir]
    steps.push({ line: instruction.line, argv, env: stepVariablesIn(state, instruction.line), user: '', workdir: '/' })
  },
  COPY: copy,
  ADD: copy,
  USER: (instruction, state) => {
    state.config.user = oneWord(instruction, state)
    if (state.config.user.length > imageConfigBounds.nameCharacters) refuse(instruction.line, 'USER is too long')
  },
  CMD: (instruction, state) => {
    state.config.cmd = commandIn(instruction)
    state.hasOwnCmd = true
  },
  ENTRYPOINT: (instruction, state) => {
    state.config.entrypoint = commandIn(instruction)
    if (!state.hasOwnCmd) state.config.cmd = []
  },
  RUN: (instruction, state) => {
    const { line, rest } = instruction
    const [flag] = /^--[a-z]+/.exec(rest) ?? []
    if (flag !== undefined) refuse(line, `RUN with ${flag} is not supported`)
    if (rest === '') refuse(line, 'RUN takes a command')
    const { user, workdir } = state.config
    const env = stepVariablesIn(state, line)
    state.steps.push({ line, argv: commandIn(instruction), env, user, workdir: workdir || '/' })
  },
}
