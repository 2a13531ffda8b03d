// The tasks that control repeats every few seconds, for example for timers, leases and assignments that are not completed.

import { sweepAudit } from './audit/sweep.ts'
import { sweepInvitations } from './invitations/sweep.ts'
import { sweepMeters } from './meters/service.ts'
import { sweepLeases } from './runner-link/leases.ts'
import type { RunningParts } from './running.ts'
import { sweepEvents } from './sandboxes/record/timeline.ts'
import { sweepEmptying } from './sandboxes/upkeep/emptying.ts'
import { sweepPushes } from './sandboxes/upkeep/reconciler.ts'
import { sweepSaves } from './sandboxes/upkeep/saving.ts'
import { stopSuspended } from './sandboxes/upkeep/suspension.ts'
import { sweepTimers } from './sandboxes/upkeep/timers.ts'
import { sweepDeletedOrganizations } from './sandboxes/upkeep/without-organization.ts'
import { placeWaiting } from './sandboxes/verbs/awaiting-image.ts'
import { sweepSnapshots } from './snapshots/sweep.ts'
import { sweepVolumes } from './volumes/service.ts'

type Step = () => Promise<unknown>

type Sweeping = {
  /** Runs every periodic task once. */
  sweep: () => Promise<void>
  /** Starts no new sweep, and resolves when the running sweep has ended. */
  stop: () => Promise<void>
}

/**
 * Starts the sweeps. `more`: tasks that each sweep runs last. With `sweepSeconds: 0`, a sweep runs only when the caller
 * calls `sweep`.
 */
export const startSweeping = (parts: RunningParts, more: readonly Step[]): Sweeping => {
  const steps: readonly Step[] = [
    () => sweepLeases(parts),
    () => sweepTimers(parts),
    () => stopSuspended(parts),
    () => sweepDeletedOrganizations(parts),
    () => sweepSnapshots(parts),
    () => sweepVolumes(parts),
    () => sweepEvents(parts),
    () => sweepAudit(parts),
    () => sweepMeters(parts),
    () => sweepInvitations(parts),
    () => placeWaiting(parts),
    () => sweepEmptying(parts),
    () => sweepSaves(parts),
    () => sweepPushes(parts),
    ...more,
  ]

  /** Runs every task once. If a task fails, for example by a timeout, the other tasks run too. */
  const sweepOnce = async () => {
    const failures: unknown[] = []
    for (const step of steps) await step().catch((error) => failures.push(error))
    if (failures.length > 0) throw failures.length === 1 ? failures[0] : new AggregateError(failures, 'a sweep failed')
  }

  let sweeping: Promise<void> = Promise.resolve()
  const sweep = () => {
    // A sweep begins only when the previous sweep has ended, with or without an error.
    sweeping = sweeping.catch(() => {}).then(sweepOnce)
    return sweeping
  }

  let isClosed = false
  let timer: NodeJS.Timeout | undefined
  const sweepLater = () => {
    if (isClosed || parts.options.sweepSeconds === 0) return
    timer = setTimeout(async () => {
      await sweep().catch((error) => {
        parts.log.error({ err: error }, 'a sweep failed; the next one is in a moment')
      })
      sweepLater()
    }, parts.options.sweepSeconds * 1000)
  }
  sweepLater()

  return {
    sweep,
    stop: async () => {
      isClosed = true
      clearTimeout(timer)
      await sweeping.catch(() => {})
    },
  }
}
