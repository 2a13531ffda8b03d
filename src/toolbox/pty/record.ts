// The record of a PTY is the metadata of its job in the agent. The sandbox is untrusted, so each field is checked before use.
import { createHash } from 'node:crypto'
import type { Job } from '../agent/agent.ts'
import type { PtyInfo } from './schemas.ts'

type PtyRecord = { id: string; cwd: string; lazyStart: boolean; envs: Record<string, string> }

/** A PTY and its present state. `hasEnded`: the shell has ended, and only its output and background processes are left. */
export type Pty = { record: PtyRecord; job: Job; isActive: boolean; hasEnded: boolean }

const prefix = 'pty.'
const metadataBytes = 4096

/** A job id for a PTY, as a hash: the agent accepts 64 plain characters, but a PTY id has up to 255 characters of any kind. */
export const jobIdOf = (ptyId: string): string =>
  prefix + createHash('sha256').update(ptyId).digest('base64url').slice(0, 40)

/** Encodes the record as metadata of the job, with as many variables as fit. The shell gets all variables. */
export const encodeRecord = ({ id, cwd, lazyStart, envs }: PtyRecord): Buffer => {
  const kept: Record<string, string> = {}
  let encoded = Buffer.from(JSON.stringify({ id, cwd, lazyStart, envs: kept }))
  for (const [name, value] of Object.entries(envs)) {
    kept[name] = value
    const longer = Buffer.from(JSON.stringify({ id, cwd, lazyStart, envs: kept }))
    if (longer.length <= metadataBytes) encoded = longer
    else delete kept[name]
  }
  return encoded
}

const decodeRecord = (metadata: Buffer): PtyRecord | undefined => {
  try {
    const { id, cwd, lazyStart, envs } = JSON.parse(metadata.toString())
    const isRecord =
      typeof id === 'string' &&
      typeof cwd === 'string' &&
      typeof lazyStart === 'boolean' &&
      typeof envs === 'object' &&
      envs !== null &&
      Object.values(envs).every((value) => typeof value === 'string')
    return isRecord ? { id, cwd, lazyStart, envs } : undefined
  } catch {
    return undefined
  }
}

/** The PTY of a job; `undefined` if the job is not a PTY. */
export const readPty = (job: Job): Pty | undefined => {
  if (!job.id.startsWith(prefix)) return undefined
  const record = decodeRecord(job.metadata)
  if (record === undefined || jobIdOf(record.id) !== job.id) return undefined
  const hasEnded = job.state === 'ended'
  // A shell with `lazyStart` is active only after its first output. Before that, it waits for its first client (shell.ts).
  return { record, job, hasEnded, isActive: job.state === 'running' && !(record.lazyStart && job.endOffset === 0) }
}

export const viewOf = ({ record, job, isActive }: Pty): PtyInfo => ({
  id: record.id,
  active: isActive,
  lazyStart: record.lazyStart,
  createdAt: job.createdAt.toISOString(),
  cwd: record.cwd,
  cols: job.cols,
  rows: job.rows,
  envs: record.envs,
})
