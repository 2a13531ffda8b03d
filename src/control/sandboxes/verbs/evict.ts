// An operator takes a sandbox away because its room is needed. Whoever asks for it within a day is told so.

import type { RunningParts } from '#src/control/running.ts'
import { noSandbox } from '#src/problems.ts'
import type { SandboxRow } from '../record/sandbox.ts'
import { findSandbox, findSandboxById, updateSandbox } from '../record/store.ts'
import { destroy } from './destroy.ts'

const hoursShown = 24

/** What was evicted after this is shown still. */
export const evictedSince = (now: Date): Date => new Date(now.getTime() - hoursShown * 3_600_000)

/** Evicts a sandbox of any organization, only by its id: names mean nothing here. */
export const evictSandbox = async (parts: RunningParts, userId: string, sandboxId: string): Promise<SandboxRow> => {
  const { database, clock } = parts
  const sandbox = await findSandboxById(database.sql, sandboxId)
  if (!sandbox || sandbox.desired_state === 'destroyed') throw noSandbox(sandboxId)
  // The eviction is marked first, so that it is shown even if the destroy below fails. Evicting twice is harmless.
  const marked = await updateSandbox(database.sql, sandbox.id, { spot_evicted_at: clock.now() })
  return await destroy(parts, marked, {
    by: { kind: 'user', id: userId },
    reason: 'Evicted: its room was needed.',
  })
}

/** Finds what `getSandbox` finds, and by id also a sandbox that was evicted less than a day ago, or that is warm. */
export const getEvenEvicted = async (
  { database, clock }: RunningParts,
  organizationId: string,
  idOrName: string,
): Promise<SandboxRow> => {
  const found = await findSandbox(database.sql, organizationId, idOrName)
  if (found) return found
  const [other] = await database.sql<SandboxRow[]>`
    select * from sandboxes
    where id = ${idOrName} and organization_id = ${organizationId}
      and (spot_evicted_at > ${evictedSince(clock.now())} or (warm_pool_id is not null and state <> 'destroyed'))`
  if (!other) throw noSandbox(idOrName)
  return other
}
