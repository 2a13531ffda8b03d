// A runner holds a lease by its heartbeats. One that misses it gets nothing new; what it has keeps its last known state.
import type { SandboxParts } from '#src/control/sandboxes/parts.ts'
import { markUnresponsive } from './store.ts'

export const sweepLeases = async ({ database, clock, log, options }: SandboxParts): Promise<void> => {
  const now = clock.now()
  const before = new Date(now.getTime() - options.leaseSeconds * 1000)
  for (const runnerId of await markUnresponsive(database.sql, before, now)) {
    log.warn({ runnerId, leaseSeconds: options.leaseSeconds }, 'a runner has missed its heartbeats')
  }
}
