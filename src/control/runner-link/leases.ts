// What becomes of runners whose lease is over, and of what was on them.

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
  // What was changing in the moment when its runner was taken out of service.
  for (const runnerId of await listGoneWithSandboxes(database.sql)) await endOnRunner(parts, runnerId)
}
