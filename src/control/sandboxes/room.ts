// Sets the sandboxes room going: what it hears, what it sweeps, and in which order it stops.
import { sweepAudit } from '#src/control/audit/sweep.ts'
import type { Callers } from '#src/control/auth/callers.ts'
import { sweepInvitations } from '#src/control/invitations/sweep.ts'
import { sweepMeters } from '#src/control/meters/service.ts'
import type { Parts } from '#src/control/parts.ts'
import { sweepLeases } from '#src/control/runners/leases.ts'
import { RunnerLinks } from '#src/control/runners/links.ts'
import { reconcileSnapshots } from '#src/control/runners/service.ts'
import { sweepSnapshots } from '#src/control/snapshots/sweep.ts'
import { ProxyLinks } from './ahead.ts'
import { ChangeFeed } from './changes.ts'
import { type SandboxOptions, type SandboxParts, standardOptions } from './parts.ts'
import { startPushing, sweepPushes } from './reconciler.ts'
import { stopSuspended } from './suspension.ts'
import { sweepTimers } from './timers.ts'
import { placeWaiting } from './waiting.ts'
import { WarmDemand } from './warm-demand.ts'
import { keepFilling } from './warm-fill.ts'
import { sweepDeletedOrganizations } from './without-organization.ts'

export type SandboxRoom = SandboxParts & {
  /** Does once what is done every few seconds: timers, leases, pushes that were lost. */
  sweep: () => Promise<void>
  close: () => Promise<void>
}

export type RoomParts = Parts & { callers: Callers }

/** `sweepSeconds: 0` leaves the sweeping to whoever calls `sweep`. */
export const openSandboxRoom = async (
  given: RoomParts,
  options: Partial<SandboxOptions> = {},
): Promise<SandboxRoom> => {
  const changes = new ChangeFeed(given.log)
  const links = new RunnerLinks()
  const proxies = new ProxyLinks()
  const demand = new WarmDemand()
  const parts: SandboxParts = { ...given, changes, links, proxies, demand, options: { ...standardOptions, ...options } }
  const { database, clock } = parts
  await reconcileSnapshots(database, clock.now())
  await changes.join(given.database)
  const stopPushing = startPushing(parts)
  const filling = keepFilling(parts)

  const steps: readonly (() => Promise<unknown>)[] = [
    () => sweepLeases(parts),
    () => sweepTimers(parts),
    () => stopSuspended(parts),
    () => sweepDeletedOrganizations(parts),
    () => sweepSnapshots(parts),
    () => sweepAudit(parts),
    () => sweepMeters(parts),
    () => sweepInvitations(parts),
    () => placeWaiting(parts),
    () => sweepPushes(parts),
    () => demand.write(parts),
    () => filling.fill(),
  ]

  /** One that fails, such as for want of time, keeps none of the others from being done. */
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
        given.log.error({ err: error }, 'a sweep failed; the next one is in a moment')
      })
      sweepLater()
    }, parts.options.sweepSeconds * 1000)
  }
  sweepLater()

  return {
    ...parts,
    sweep,
    close: async () => {
      isClosed = true
      clearTimeout(timer)
      stopPushing()
      await filling.stop()
      changes.close()
      links.closeAll()
      proxies.closeAll()
      await sweeping.catch(() => {})
    },
  }
}
