// `<data>/run/up.json`: who serves this data directory, and how each of its programs is. Written by `up` alone, by
// atomic rename; read by the other subcommands. What it says counts only while its process lives.
import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { isAlive, type ProcessIdentity } from '#src/kit/process-identity.ts'

export type ProgramState = ProcessIdentity & {
  name: string
  /** `refused`: it runs, and control does not take its key. */
  state: 'starting' | 'ready' | 'refused' | 'waiting'
  /** When it came into this state. */
  since: string
  restarts: number
  /** Why it ended last time. */
  lastEnd?: string
}

export type UpState = ProcessIdentity & { host: string; port: number; url: string; programs: ProgramState[] }

export const writeUpState = (path: string, state: UpState): void => {
  writeFileSync(`${path}.new`, `${JSON.stringify(state, null, 2)}\n`, { mode: 0o644 })
  renameSync(`${path}.new`, path)
}

/**
 * Writes each state that it is given, and never throws: a full disk must not end who keeps the programs running. What could not
 * be written is said once, until it can be again; the next state is whole, so nothing is missing then.
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

/** What was written last, whether or not its process lives. */
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

/** Whether `alcove runner --join` wrote the state: its server, with its key, belongs to another data directory. */
export const isJoinedRunner = ({ programs }: UpState): boolean => !programs.some(({ name }) => name === 'control')
