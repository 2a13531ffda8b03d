// What a caller may change of a sandbox without its state changing.
import { Problem } from '#src/problems.ts'
import { maxAutoArchiveInterval } from './create-body.ts'
import type { Actor, SandboxParts } from './parts.ts'
import { asAssignment, type SandboxRow } from './sandbox.ts'
import { largestInterval } from './schemas.ts'
import { newSecret } from './secret.ts'
import { getSandbox, updateSandbox, writeLabels } from './store.ts'

type Set = Partial<Omit<SandboxRow, 'state' | 'version' | 'desired_state'>>

const change = async (
  { database, clock }: SandboxParts,
  { organization }: Actor,
  idOrName: string,
  set: (sandbox: SandboxRow, now: Date) => Set,
): Promise<SandboxRow> => {
  const sandbox = await getSandbox(database.sql, organization.id, idOrName)
  const now = clock.now()
  return await updateSandbox(database.sql, sandbox.id, { ...set(sandbox, now), updated_at: now })
}

/** Reads a number of minutes from a path; a word, a fraction or a negative is a 400. */
const readMinutes = (name: string, text: string, least = 0): number => {
  const minutes = /^-?\d{1,12}$/.test(text) ? Number(text) : Number.NaN
  if (minutes >= least && minutes <= largestInterval) return minutes
  throw new Problem(
    'bad_request',
    `params.${name} must be a whole number of minutes from ${least} to ${largestInterval}`,
  )
}

export const setLabels = async (
  { database, clock, links }: SandboxParts,
  { organization }: Actor,
  idOrName: string,
  labels: Record<string, string>,
): Promise<SandboxRow> => {
  const sandbox = await getSandbox(database.sql, organization.id, idOrName)
  const row = await writeLabels(database.sql, sandbox.id, labels, clock.now())
  if (row.generation !== sandbox.generation && row.runner_id !== null) links.push(row.runner_id, asAssignment(row))
  return row
}

export const setPublic = (parts: SandboxParts, actor: Actor, idOrName: string, text: string) => {
  if (text !== 'true' && text !== 'false') throw new Problem('bad_request', 'params.isPublic must be true or false')
  return change(parts, actor, idOrName, () => ({ public: text === 'true' }))
}

export const setAutoStop = (parts: SandboxParts, actor: Actor, idOrName: string, text: string) => {
  const minutes = readMinutes('interval', text)
  // Counted anew from now: whoever sets it is using the sandbox.
  return change(parts, actor, idOrName, (_, now) => ({ auto_stop_interval: minutes, last_activity_at: now }))
}

export const setAutoPause = (parts: SandboxParts, actor: Actor, idOrName: string, text: string) => {
  if (readMinutes('interval', text) > 0) throw new Problem('bad_request', 'Sandboxes cannot be paused yet.')
  return change(parts, actor, idOrName, () => ({ auto_pause_interval: 0 }))
}

export const setAutoArchive = (parts: SandboxParts, actor: Actor, idOrName: string, text: string) => {
  const minutes = readMinutes('interval', text)
  const kept = minutes === 0 ? maxAutoArchiveInterval : Math.min(minutes, maxAutoArchiveInterval)
  return change(parts, actor, idOrName, () => ({ auto_archive_interval: kept }))
}

export const setAutoDelete = (parts: SandboxParts, actor: Actor, idOrName: string, text: string) => {
  const minutes = Math.max(readMinutes('interval', text, -largestInterval), -1)
  return change(parts, actor, idOrName, () => ({ auto_delete_interval: minutes }))
}

/** Counted from now, whatever it was before; 0 takes it away. */
export const setTtl = (parts: SandboxParts, actor: Actor, idOrName: string, text: string) => {
  const minutes = readMinutes('ttlMinutes', text)
  return change(parts, actor, idOrName, (_, now) => ({
    auto_destroy_at: minutes === 0 ? null : new Date(now.getTime() + minutes * 60_000),
  }))
}

export const refreshActivity = (parts: SandboxParts, actor: Actor, idOrName: string) =>
  change(parts, actor, idOrName, (_, now) => ({ last_activity_at: now }))

export const getSigningKey = async ({ database }: SandboxParts, actor: Actor, idOrName: string): Promise<string> =>
  (await getSandbox(database.sql, actor.organization.id, idOrName)).signing_key

export const rotateSigningKey = async (parts: SandboxParts, actor: Actor, idOrName: string): Promise<string> => {
  const row = await change(parts, actor, idOrName, () => ({ signing_key: newSecret() }))
  return row.signing_key
}
