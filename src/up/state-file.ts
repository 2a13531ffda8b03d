// `<data>/run/up.json`: the process that serves this data directory, and the states of the programs that it has started. Only `up`
// writes the file, by a rename, so no reader sees half of it. The file is valid only while this `up` runs.
import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { isAlive, type ProcessIdentity } from '#src/kit/process-identity.ts'
import type { Progress } from '#src/wire/runner-link.ts'

export type ProgramState = ProcessIdentity & {
  name: string
  /** State of the program. `refused`: the program runs, but control does not accept the program's key. */
  state: 'starting' | 'ready' | 'refused' | 'waiting'
  /** When the program entered its current state, as ISO 8601. */
  since: string
  restarts: number
  /** Why the program ended when it last ended. Absent: the program has not ended yet. */
  lastEnd?: string
}

export type UpState = ProcessIdentity & {
  host: string
  port: number
  url: string
  /** `host:port` at which control listens for hosts. Absent: no machine may join over the network. */
  hosts?: string
  programs: ProgramState[]
  /** Progress of the first build of the default image. Absent at all other times. */
  makingImage?: Progress
}

export const writeUpState = (path: string, state: UpState): void => {
  writeFileSync(`${path}.new`, `${JSON.stringify(state, null, 2)}\n`, { mode: 0o644 })
  renameSync(`${path}.new`, path)
}

/**
 * Returns a function that writes a state and never throws, because a full disk must not end `up`. Of several failures in a row,
 * only the first is logged. Each state is complete, so the next write makes up for a failed write.
 */
export const upStateWriter = (path: string, say: (line: string) => void): ((state: UpState) => void) => {
  let wasSaid = false
  return (state) => {
    try {
      writeUpState(path, state)
      wasSaid = false
    } catch (error) {
      if (!wasSaid) say(`cannot write ${path}, so "alcove status" shows old information: ${(error as Error).message}`)
      wasSaid = true
    }
  }
}

/** Returns the state that was written last, even if the process that wrote this state has ended. */
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

/**
 * True if `alcove runner --join` has written the state. The server that the runner has joined uses a different data directory,
 * where the admin key is.
 */
export const isJoinedRunner = ({ programs }: UpState): boolean => !programs.some(({ name }) => name === 'control')
