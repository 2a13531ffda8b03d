// What is done every few seconds, whether or not anything happened: timers, leases, pushes that were lost.

import { sweepAudit } from './audit/sweep.ts'
import { sweepInvitations } from './invitations/sweep.ts'
import { sweepMeters } from './meters/service.ts'
import { sweepLeases } from './runner-link/leases.ts'
import type { RunningParts } from './running.ts'
import { sweepEvents } from './sandboxes/record/timeline.ts'
import { sweepPushes } from './sandboxes/upkeep/reconciler.ts'
import { stopSuspended } from './sandboxes/upkeep/suspension.ts'
import { sweepTimers } from './sandboxes/upkeep/timers.ts'
import { sweepDeletedOrganizations } from './sandboxes/upkeep/without-organization.ts'
import { placeWaiting } from './sandboxes/verbs/awaiting-image.ts'
import { sweepSnapshots } from './snapshots/sweep.ts'

type Step = () => Promise<unknown>

type Sweeping = {
  /** Does all of it once. */
  sweep: () => Promise<void>
  /** Begins no more by itself; answers when the one that runs has ended. */
  stop: () => Promise<void>
}

/** `more` is what others have to do as often. `sweepSeconds: 0` leaves the sweeping to whoever calls `sweep`. */
export const startSweeping = (parts: RunningParts, more: readonly Step[]): Sweeping => {
  const steps: readonly Step[] = [
    () => sweepLeases(parts),
    () => sweepTimers(parts),
    () => stopSuspended(parts),
    () => sweepDeletedOrganizations(parts),
    () => sweepSnapshots(parts),
    () => sweepEvents(parts),
    () => sweepAudit(parts),
    () => sweepMeters(parts),
    () => sweepInvitations(parts),
    () => placeWaiting(parts),
    () => sweepPushes(parts),
    ...more,
  ]

  /** Sweeps once. A task that fails, for example for want of time, keeps none of the others from being done. */
  const sweepOnce = async () => {
    const failures: unknown[] = []
    for (const step of steps) await step().catch((error) => failures.push(error))
    if (failures.length > 0) throw failures.length === 1 ? failures[0] : new AggregateError(failures, 'a sweep failed')
  }

  let sweeping: Promise<void> = Promise.resolve()
  const sweep = () => {
    // After the one before, whether or not that succeeded.
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
