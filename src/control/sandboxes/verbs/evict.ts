// Evicts a sandbox: an operator destroys it to free its resources. For a day, reads of the sandbox show that it was
// evicted.

import type { RunningParts } from '#src/control/running.ts'
import { noSandbox } from '#src/problems.ts'
import type { SandboxRow } from '../record/sandbox.ts'
import { findSandbox, findSandboxById, updateSandbox } from '../record/store.ts'
import { destroy } from './destroy.ts'

const hoursShown = 24

/** Returns the time one day before `now`. The API still shows sandboxes that were evicted after that time. */
export const evictedSince = (now: Date): Date => new Date(now.getTime() - hoursShown * 3_600_000)

/**
 * Destroys a sandbox of any organization because its runner needs the room. Takes only an id, because names are unique
 * only in an organization.
 */
export const evictSandbox = async (parts: RunningParts, userId: string, sandboxId: string): Promise<SandboxRow> => {
  const { database, clock } = parts
  const sandbox = await findSandboxById(database.sql, sandboxId)
  if (!sandbox || sandbox.desired_state === 'destroyed') throw noSandbox(sandboxId)
  // The eviction's time is stored first. If the destroy fails, reads still show the eviction, and the operator can evict again.
  const marked = await updateSandbox(database.sql, sandbox.id, { spot_evicted_at: clock.now() })
  return await destroy(parts, marked, {
    by: { kind: 'user', id: userId },
    reason: 'Evicted: its room was needed.',
  })
}

/** Finds a sandbox as `getSandbox` does. By its id, also finds a warm sandbox, or one that was evicted less than a day ago. */
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
