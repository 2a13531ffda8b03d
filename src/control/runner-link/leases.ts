// Marks runners without heartbeats as silent, and ends the sandboxes of removed runners.

import { endOnRunner } from '#src/control/sandboxes/upkeep/runner-gone.ts'
import { silentBefore } from '../runners/leases.ts'
import { listGoneWithSandboxes, markUnresponsive } from '../runners/service.ts'
import type { RunningParts } from '../running.ts'

export const sweepLeases = async (parts: RunningParts): Promise<void> => {
  const { database, clock, log, options } = parts
  const now = clock.now()
  for (const runnerId of await markUnresponsive(database.sql, silentBefore(parts), now)) {
    log.warn({ runnerId, leaseSeconds: options.leaseSeconds }, 'a runner has missed its heartbeats')
  }
  // A sandbox that changed at the moment when its runner was removed can still name that runner. Such sandboxes are ended
  // now.
  for (const runnerId of await listGoneWithSandboxes(database.sql)) await endOnRunner(parts, runnerId)
}
