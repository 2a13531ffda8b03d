// What a definition asks for: the image that it builds on, the commands to run on it, and what the result says of itself.
// What is not supported of Dockerfiles is refused by its name.
import { posix } from 'node:path'
import type { ContainerConfig } from '../manifest.ts'
import { type CopyStep, copyIn } from './copy.ts'
import { type Instruction, instructionsOf, refuse } from './instructions.ts'
import { type Variables, wordsOf } from './words.ts'

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

export type Plan = {
  /** The reference of the image to begin with. */
  from: string
  /** What becomes of an image that says this of itself. */
  on(base: ContainerConfig): { steps: BuildStep[]; config: ContainerConfig }
}

type State = {
  config: ContainerConfig
  args: Record<string, string>
  steps: BuildStep[]
  escapedBy: string
  /** CMD is forgotten with a new ENTRYPOINT, but not one of the same definition. */
  hasOwnCmd: boolean
}

/** Said about a container that is run in another way than ours; without effect on files. */
const withoutEffect = ['LABEL', 'EXPOSE', 'MAINTAINER', 'STOPSIGNAL', 'HEALTHCHECK', 'VOLUME']

const reasons: Record<string, string> = {
  ONBUILD: 'ONBUILD is not supported',
  SHELL: 'SHELL is not supported',
}

/** `hasFiles`: some came with it, for COPY and ADD. */
export const planOf = (text: string, hasFiles = false): Plan => {
  const { instructions, escapedBy } = instructionsOf(text)
  const start = instructions.findIndex(({ name }) => name === 'FROM')
  if (start === -1) return refuse(1, 'there is no FROM')
  const [from, ...body] = instructions.slice(start) as [Instruction, ...Instruction[]]
  const globals: Record<string, string> = {}
  for (const instruction of instructions.slice(0, start)) {
    if (instruction.name !== 'ARG') refuse(instruction.line, 'only ARG may come before FROM')
    Object.assign(globals, argsIn(instruction, globals, {}, escapedBy))
  }
  for (const { line, name } of body) {
    if (name === 'FROM') refuse(line, 'more than one FROM (a build in stages) is not supported')
    if ((name === 'COPY' || name === 'ADD') && !hasFiles)
      refuse(line, `${name} needs files, and none came with the definition`)
    if (!Object.hasOwn(verbs, name) && !withoutEffect.includes(name))
      refuse(line, reasons[name] ?? `${name} is no instruction`)
  }
  const plan: Plan = {
    from: baseOf(from, globals, escapedBy),
    on: (base) => {
      const state: State = { config: structuredClone(base), args: {}, steps: [], escapedBy, hasOwnCmd: false }
      for (const instruction of body) verbs[instruction.name]?.(instruction, state, globals)
      return { steps: state.steps, config: state.config }
    },
  }
  // What is wrong is said before anything is downloaded.
  plan.on({ entrypoint: [], cmd: [], env: {}, user: '', workdir: '' })
  return plan
}

const words = ({ line, rest }: Instruction, variables: Variables, escapedBy: string, splits = true): string[] => {
  try {
    return wordsOf(rest, variables, escapedBy, splits)
  } catch {
    return refuse(line, 'a quote is never closed')
  }
}

const baseOf = (instruction: Instruction, globals: Variables, escapedBy: string): string => {
  const [from, ...more] = words(instruction, globals, escapedBy)
  if (from === undefined || from === '') return refuse(instruction.line, 'FROM names no image')
  if (from.startsWith('--')) return refuse(instruction.line, `FROM with ${from.split('=')[0]} is not supported`)
  if (from === 'scratch') return refuse(instruction.line, 'FROM scratch has no files to run anything with')
  if (more.length > 0 && !(more.length === 2 && more[0]?.toUpperCase() === 'AS'))
    return refuse(instruction.line, 'FROM takes one image')
  return from
}

const variablesOf = ({ config, args }: State): Variables => ({ ...args, ...config.env })

const nameShape = /^[A-Za-z_][\w.-]*$/

const pairsIn = (instruction: Instruction, variables: Variables, escapedBy: string): [string, string][] => {
  const { line, name } = instruction
  const found = words(instruction, variables, escapedBy)
  const isOldForm = found[0] !== undefined && !found[0].includes('=')
  if (isOldForm && name === 'ENV') {
    const [, key = '', value = ''] = /^(\S+)\s+(.*)$/s.exec(instruction.rest) ?? []
    if (!nameShape.test(key)) return refuse(line, 'ENV takes NAME=value')
    return [[key, words({ ...instruction, rest: value }, variables, escapedBy, false).join('')]]
  }
  if (found.length === 0) return refuse(line, `${name} takes NAME=value`)
  return found.map((word) => {
    const at = word.indexOf('=')
    if (at <= 0 || !nameShape.test(word.slice(0, at))) return refuse(line, `${name} takes NAME=value`)
    return [word.slice(0, at), word.slice(at + 1)]
  })
}

/** Without a value it is what ARG before FROM said, or nothing. */
const argsIn = (instruction: Instruction, variables: Variables, globals: Variables, escapedBy: string) => {
  const found = words(instruction, variables, escapedBy)
  if (found.length === 0) refuse(instruction.line, 'ARG takes a name')
  const pairs = found.flatMap((word): [string, string][] => {
    const [, name, value = globals[name as string]] = /^([A-Za-z_]\w*)(?:=(.*))?$/s.exec(word) ?? []
    if (name === undefined) return refuse(instruction.line, 'ARG takes NAME or NAME=value')
    return value === undefined ? [] : [[name, value]]
  })
  return Object.fromEntries(pairs)
}

/** A JSON list as it is, anything else for the shell. */
const commandIn = ({ rest }: Instruction): string[] => {
  if (rest.startsWith('['))
    try {
      const parsed: unknown = JSON.parse(rest)
      if (Array.isArray(parsed) && parsed.every((part) => typeof part === 'string')) return parsed
    } catch {}
  return ['/bin/sh', '-c', rest]
}

const oneWord = (instruction: Instruction, state: State): string => {
  const [value = '', ...more] = words(instruction, variablesOf(state), state.escapedBy, instruction.name !== 'WORKDIR')
  if (value === '' || more.length > 0) return refuse(instruction.line, `${instruction.name} takes one value`)
  return value
}

const verbs: Record<string, (instruction: Instruction, state: State, globals: Variables) => void> = {
  ARG: (instruction, state, globals) => {
    Object.assign(state.args, argsIn(instruction, variablesOf(state), globals, state.escapedBy))
  },
  ENV: (instruction, state) => {
    for (const [name, value] of pairsIn(instruction, variablesOf(state), state.escapedBy))
      state.config.env[name] = value
  },
  WORKDIR: (instruction, state) => {
    const { config, args, steps } = state
    config.workdir = posix.resolve('/', config.workdir, oneWord(instruction, state))
    const argv = ['mkdir', '-p', '--', config.workdir]
    steps.push({ line: instruction.line, argv, env: { ...args, ...config.env }, user: '', workdir: '/' })
  },
  COPY: (instruction, state) => {
    state.steps.push(
      copyIn(instruction, state.config.workdir, (text) => words(text, variablesOf(state), state.escapedBy)),
    )
  },
  ADD: (instruction, state) => {
    state.steps.push(
      copyIn(instruction, state.config.workdir, (text) => words(text, variablesOf(state), state.escapedBy)),
    )
  },
  USER: (instruction, state) => {
    state.config.user = oneWord(instruction, state)
  },
  CMD: (instruction, state) => {
    state.config.cmd = commandIn(instruction)
    state.hasOwnCmd = true
  },
  ENTRYPOINT: (instruction, state) => {
    state.config.entrypoint = commandIn(instruction)
    if (!state.hasOwnCmd) state.config.cmd = []
  },
  RUN: (instruction, { config, args, steps }) => {
    const { line, rest } = instruction
    const [flag] = /^--[a-z]+/.exec(rest) ?? []
    if (flag !== undefined) refuse(line, `RUN with ${flag} is not supported`)
    if (rest === '') refuse(line, 'RUN takes a command')
    const { env, user, workdir } = config
    steps.push({ line, argv: commandIn(instruction), env: { ...args, ...env }, user, workdir: workdir || '/' })
  },
}
