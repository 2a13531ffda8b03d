// `<data>/run/up.json`: the process that serves this data directory, and the state of each program. Only `up` writes the file, by
// atomic rename; other subcommands read it. It is valid only while that process lives.
import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { isAlive, type ProcessIdentity } from '#src/kit/process-identity.ts'
import type { Progress } from '#src/wire/runner-link.ts'

export type ProgramState = ProcessIdentity & {
  name: string
  /** State of the program. `refused`: it runs, but control refuses its key. */
  state: 'starting' | 'ready' | 'refused' | 'waiting'
  /** Time when the program entered this state, as ISO 8601. */
  since: string
  restarts: number
  /** Why the program ended the last time. */
  lastEnd?: string
}

export type UpState = ProcessIdentity & {
  host: string
  port: number
  url: string
  programs: ProgramState[]
  /** Progress of the default image, while it is made for the first time. */
  makingImage?: Progress
}

export const writeUpState = (path: string, state: UpState): void => {
  writeFileSync(`${path}.new`, `${JSON.stringify(state, null, 2)}\n`, { mode: 0o644 })
  renameSync(`${path}.new`, path)
}

/**
 * Returns a function that writes a state and never throws: a full disk must not end the supervisor. A failure is logged
 * once until a write succeeds again. Each state is complete, so a lost one needs no repair.
 */
export const upStateWriter = (path: string, say: (line: string) => void): ((state: UpState) => void) => {
  let wasSaid = false
  return (state) => {
    try {
      writeUpState(path, state)
      wasSaid = false
    } catch (error) {
      if (!wasSaid) say(`cannot write ${path}, so "alcove status" shows older things: ${(error as Error).message}`)
      wasSaid = true
    }
  }
}

/** Finds the last state that was written, whether or not its process still lives. */
export const findUpState = (path: string): UpState | undefined => {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as UpState
  } catch {
    return undefined
  }
}

export const findRunningUp = (path: string): UpState | undefined => {
  const state = findUpState(path)
  return state && isAlive(state) ? state : undefined
}

/** True if `alcove runner --join` wrote the state: the server and its key belong to another data directory. */
export const isJoinedRunner = ({ programs }: UpState): boolean => !programs.some(({ name }) => name === 'control')
