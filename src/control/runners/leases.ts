// A runner holds a lease by its heartbeats. One that misses it gets nothing new; what it has keeps its last known state.
import type { SandboxParts } from '#src/control/sandboxes/parts.ts'
import { endOnRunner } from '#src/control/sandboxes/runner-gone.ts'
import { listGoneWithSandboxes, markUnresponsive } from './store.ts'

/** Who was last heard before is silent. */
export const silentBefore = ({ clock, options }: Pick<SandboxParts, 'clock' | 'options'>): Date =>
  new Date(clock.now().getTime() - options.leaseSeconds * 1000)

export const sweepLeases = async (parts: SandboxParts): Promise<void> => {
  const { database, clock, log, options } = parts
  const now = clock.now()
  for (const runnerId of await markUnresponsive(database.sql, silentBefore(parts), now)) {
    log.warn({ runnerId, leaseSeconds: options.leaseSeconds }, 'a runner has missed its heartbeats')
  }
  // What was changing in the moment when its runner was taken out of service.
  for (const runnerId of await listGoneWithSandboxes(database.sql)) await endOnRunner(parts, runnerId)
}
