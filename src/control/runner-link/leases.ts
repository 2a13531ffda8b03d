// Marks runners without heartbeats as silent. Gives up the sandboxes of lost runners: a sandbox becomes archived if the store
// has a copy of it, otherwise `error`. Ends the sandboxes of removed runners.

import { noteSilence } from '#src/control/sandboxes/record/timeline.ts'
import { giveUpOn } from '#src/control/sandboxes/upkeep/lost-runner.ts'
import { endOnRunner } from '#src/control/sandboxes/upkeep/runner-gone.ts'
import { silentBefore } from '../runners/leases.ts'
import { hearRegions, listGoneWithSandboxes, listLost, markLost, markUnresponsive } from '../runners/service.ts'
import type { RunningParts } from '../running.ts'

/** Gives up the sandboxes of all lost runners. If control was killed before the end, the next call gives up the rest. */
export const giveUpOnLost = async (parts: RunningParts): Promise<void> => {
  for (const runner of await listLost(parts.database.sql)) await giveUpOn(parts, runner)
}

export const sweepLeases = async (parts: RunningParts): Promise<void> => {
  const { database, clock, log, options, settings } = parts
  const now = clock.now()
  const heard = await hearRegions(database.sql, parts, now)
  const silent = await database.transaction(async (transaction) => {
    const marked = await markUnresponsive(transaction, silentBefore(parts), now)
    // While most runners of a region are silent, the network is probably down, so timelines do not record the silence.
    const noted = marked.filter(({ regionId }) => heard.includes(regionId)).map(({ id }) => id)
    if (noted.length > 0) await noteSilence(transaction, noted, now)
    return marked
  })
  for (const { id: runnerId } of silent) {
    log.warn({ runnerId, leaseSeconds: options.leaseSeconds }, 'a runner has missed its heartbeats')
  }
  const lost = await markLost(database.sql, { regionIds: heard, minutes: settings.lostAfterMinutes, now })
  for (const runnerId of lost) log.error({ runnerId }, 'a runner is lost; its sandboxes are given up')
  await giveUpOnLost(parts)
  // A sandbox that changed while its runner was being removed may still have that runner in its row. Ends such
  // sandboxes.
  for (const runnerId of await listGoneWithSandboxes(database.sql)) await endOnRunner(parts, runnerId)
}
