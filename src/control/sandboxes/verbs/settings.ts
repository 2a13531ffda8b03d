// Settings of a sandbox that a caller can change without changing its state.

import type { Actor } from '#src/control/auth/actor.ts'
import { newSecret } from '#src/control/auth/secret.ts'
import { checkKept, getQuota, readTtl } from '#src/control/quotas/service.ts'
import type { RunningParts } from '#src/control/running.ts'
import { Problem } from '#src/problems.ts'
import type { SandboxRow } from '../record/sandbox.ts'
import { largestInterval, maxAutoArchiveInterval } from '../record/schemas.ts'
import { getSandbox, lockSandbox, updateSandbox, writeLabels } from '../record/store.ts'
import { checkMap } from '../record/variables.ts'

type Set = Partial<Omit<SandboxRow, 'state' | 'version' | 'desired_state'>>

const change = async (
  { database, clock }: RunningParts,
  { organization }: Actor,
  idOrName: string,
  set: (sandbox: SandboxRow, now: Date) => Set,
): Promise<SandboxRow> => {
  const sandbox = await getSandbox(database.sql, organization.id, idOrName)
  const now = clock.now()
  return await updateSandbox(database.sql, sandbox.id, { ...set(sandbox, now), updated_at: now })
}

/** Reads a number of minutes from a path. Throws 400 for anything but a whole number of at least `least`. */
const readMinutes = (name: string, text: string, least = 0): number => {
  const minutes = /^-?\d{1,12}$/.test(text) ? Number(text) : Number.NaN
  if (minutes >= least && minutes <= largestInterval) return minutes
  throw new Problem(
    'bad_request',
    `params.${name} must be a whole number of minutes from ${least} to ${largestInterval}`,
  )
}

export const setLabels = async (
  { database, clock, changes }: RunningParts,
  { organization }: Actor,
  idOrName: string,
  labels: Record<string, string>,
): Promise<SandboxRow> => {
  const sandbox = await getSandbox(database.sql, organization.id, idOrName)
  const row = await writeLabels(database.sql, sandbox.id, checkMap('labels', labels), clock.now())
  if (row.generation !== sandbox.generation) changes.renew(row)
  return row
}

export const setPublic = (parts: RunningParts, actor: Actor, idOrName: string, text: string) => {
  if (text !== 'true' && text !== 'false') throw new Problem('bad_request', 'params.isPublic must be true or false')
  return change(parts, actor, idOrName, () => ({ public: text === 'true' }))
}

type IdleColumn = 'auto_stop_interval' | 'auto_pause_interval' | 'auto_delete_interval'

const checkIdle = (sandbox: SandboxRow, column: IdleColumn, minutes: number): void => {
  const after = { ...sandbox, [column]: minutes }
  if (after.auto_pause_interval === 0) return
  if (after.auto_stop_interval > 0) {
    const other = column === 'auto_stop_interval' ? ['paused', 'autopause'] : ['stopped', 'autostop']
    throw new Problem('bad_request', `This sandbox is ${other[0]} when it is idle; set ${other[1]} to 0 first.`)
  }
  if (after.auto_delete_interval === 0) {
    throw new Problem('bad_request', 'A sandbox cannot be both: paused when it is idle, and deleted when it stops.')
  }
}

/**
 * Sets an idle interval of a sandbox. A sandbox with autopause cannot have autostop, or be deleted when it stops. For autostop
 * and autopause, the interval 0 is always valid: it disables the timer.
 */
const setIdleInterval = async (
  { database, clock }: RunningParts,
  { organization }: Actor,
  idOrName: string,
  column: IdleColumn,
  minutes: number,
  set: (now: Date) => Set = () => ({}),
): Promise<SandboxRow> =>
  database.transaction(async (transaction) => {
    const { id } = await getSandbox(transaction, organization.id, idOrName)
    const sandbox = await lockSandbox(transaction, id)
    if (minutes > 0 || column === 'auto_delete_interval') checkIdle(sandbox, column, minutes)
    const now = clock.now()
    return await updateSandbox(transaction, id, { [column]: minutes, updated_at: now, ...set(now) })
  })

/** Returns columns that restart the idle time, because a caller who sets an interval is using the sandbox. */
const fromNow = (now: Date): Set => ({ last_activity_at: now })

export const setAutoStop = async (parts: RunningParts, actor: Actor, idOrName: string, text: string) =>
  setIdleInterval(parts, actor, idOrName, 'auto_stop_interval', readMinutes('interval', text), fromNow)

export const setAutoPause = async (parts: RunningParts, actor: Actor, idOrName: string, text: string) =>
  setIdleInterval(parts, actor, idOrName, 'auto_pause_interval', readMinutes('interval', text), fromNow)

export const setAutoArchive = (parts: RunningParts, actor: Actor, idOrName: string, text: string) => {
  const minutes = readMinutes('interval', text)
  const kept = minutes === 0 ? maxAutoArchiveInterval : Math.min(minutes, maxAutoArchiveInterval)
  return change(parts, actor, idOrName, () => ({ auto_archive_interval: kept }))
}

const withQuota = async ({ database: { sql } }: RunningParts, { organization }: Actor, idOrName: string) => {
  const sandbox = await getSandbox(sql, organization.id, idOrName)
  return { sandbox, quota: await getQuota(sql, organization, sandbox.region_id, sandbox.sandbox_class) }
}

export const setAutoDelete = async (parts: RunningParts, actor: Actor, idOrName: string, text: string) => {
  const minutes = Math.max(readMinutes('interval', text, -largestInterval), -1)
  const { sandbox, quota } = await withQuota(parts, actor, idOrName)
  if (sandbox.auto_delete_interval === 0) checkKept(sandbox.disk_gib, minutes, quota)
  return await setIdleInterval(parts, actor, idOrName, 'auto_delete_interval', minutes)
}

/** Sets the time to live, counted from now. 0 removes the time to live, if the region allows sandboxes without one. */
export const setTtl = async (parts: RunningParts, actor: Actor, idOrName: string, text: string) => {
  const { quota } = await withQuota(parts, actor, idOrName)
  const minutes = readTtl(readMinutes('ttlMinutes', text), quota)
  return await change(parts, actor, idOrName, (_, now) => ({
    auto_destroy_at: minutes === 0 ? null : new Date(now.getTime() + minutes * 60_000),
  }))
}

export const refreshActivity = (parts: RunningParts, actor: Actor, idOrName: string) =>
  change(parts, actor, idOrName, (_, now) => ({ last_activity_at: now }))

export const getSigningKey = async ({ database }: RunningParts, actor: Actor, idOrName: string): Promise<string> =>
  (await getSandbox(database.sql, actor.organization.id, idOrName)).signing_key

export const rotateSigningKey = async (parts: RunningParts, actor: Actor, idOrName: string): Promise<string> => {
  const row = await change(parts, actor, idOrName, () => ({ signing_key: newSecret() }))
  return row.signing_key
}
