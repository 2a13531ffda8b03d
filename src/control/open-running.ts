// Starts and stops the parts of control that run all the time: its connections and its periodic tasks.

import type { Callers } from '#src/control/auth/callers.ts'
import { GateLinks, type GateParts } from './access/gate-links.ts'
import { Tickets } from './access/tickets.ts'
import type { Parts } from './parts.ts'
import { RunnerLinks } from './runner-links.ts'
import { type RunningOptions, standardOptions } from './running.ts'
import { ChangeFeed } from './sandboxes/record/changes.ts'
import { startPushing } from './sandboxes/upkeep/reconciler.ts'
import { destroy } from './sandboxes/verbs/destroy.ts'
import { reconcileSnapshots } from './snapshots/of-runner.ts'
import { startSweeping } from './sweep.ts'
import { WarmDemand } from './warm-pools/demand.ts'
import { keepFilling } from './warm-pools/fill.ts'

export type RunningServer = GateParts & {
  /** Runs all periodic tasks once, for example the check of timers. */
  sweep: () => Promise<void>
  close: () => Promise<void>
}

type RoomParts = Parts & { callers: Callers }

/** Starts the connections and the periodic tasks of control. With `sweepSeconds: 0`, tasks run only when `sweep` is called. */
export const openRunning = async (given: RoomParts, options: Partial<RunningOptions> = {}): Promise<RunningServer> => {
  const changes = new ChangeFeed(given.log)
  const links = new RunnerLinks()
  const gates = new GateLinks()
  const demand = new WarmDemand()
  const tickets = await Tickets.open(given)
  const parts: GateParts = {
    ...given,
    changes,
    links,
    gates,
    tickets,
    demand,
    options: { ...standardOptions, ...options },
  }
  const { database, clock } = parts
  await reconcileSnapshots(database, clock.now())
  await changes.join(given.database)
  const stopPushing = startPushing(parts)
  const filling = keepFilling(parts, destroy)
  const sweeping = startSweeping(parts, [() => tickets.renew(), () => demand.write(parts), () => filling.fill()])

  return {
    ...parts,
    sweep: sweeping.sweep,
    close: async () => {
      const swept = sweeping.stop()
      stopPushing()
      await filling.stop()
      changes.close()
      links.closeAll()
      gates.closeAll()
      await swept
    },
  }
}
