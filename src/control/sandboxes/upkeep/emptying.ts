// Empties a runner that the operator has drained (taken out of service) with the option `move`: archives the runner's sandboxes.
// Sandboxes that ran start again on other runners. All progress is in the sandboxes' rows, so another control process can continue.
// If a caller then starts, stops or deletes a sandbox, control ends its relocation.

import { findEmptied, listEmptied } from '#src/control/runners/service.ts'
import type { RunningParts } from '#src/control/running.ts'
import { Problem } from '#src/problems.ts'
import { countArchiving, listEmptying, listToMove } from '../record/emptying.ts'
import type { SandboxRow } from '../record/sandbox.ts'
import { archiveColumns } from '../verbs/archive.ts'
import { destroy } from '../verbs/destroy.ts'
import { moveSandbox } from '../verbs/move.ts'
import { findRoom, findRunnerForArchived } from '../verbs/start.ts'

const by = { kind: 'timer', id: 'emptied-runner' } as const
const reason = 'Its host is emptied.'

/**
 * While this many sandboxes of a runner are being archived, a sweep archives no more. A runner makes at most 4 archives
 * at once.
 */
const mostAtOnce = 4

/** Returns false if `act` is refused, for example because no runner has room. A later sweep tries again. */
const attempt = async (parts: RunningParts, row: SandboxRow, act: () => Promise<unknown>): Promise<boolean> => {
  try {
    await act()
    return true
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    parts.log.info({ sandboxId: row.id, why: error.message }, 'a sandbox of an emptied runner waits')
    return false
  }
}

/** Starts sandboxes that ran before their runner was emptied: archived ones elsewhere, the others on their own runner. */
const restart = async (parts: RunningParts): Promise<void> => {
  for (const row of await listEmptying(parts.database.sql, parts.clock.now())) {
    const how = { by, reason, set: () => ({ emptying: 'restarting' }) as const, check: findRoom(parts) }
    await attempt(parts, row, () => moveSandbox(parts, row, 'start', how))
  }
}

const move = async (parts: RunningParts, row: SandboxRow): Promise<boolean> => {
  if (row.warm_pool_id !== null) return await attempt(parts, row, () => destroy(parts, row, { by, reason }))
  return await attempt(parts, row, async () => {
    // Archives a running sandbox only if another runner has room for it. The room is not reserved. If the room is taken meanwhile,
    // the sandbox stays archived until a runner has room.
    if (row.state === 'started')
      await parts.database.transaction((transaction) => findRunnerForArchived(transaction, row, parts.options))
    const emptying = row.state === 'started' ? 'restart' : null
    await moveSandbox(parts, row, 'archive', { by, reason, set: (found) => ({ ...archiveColumns(found), emptying }) })
  })
}

export const sweepEmptying = async (parts: RunningParts): Promise<void> => {
  const { sql } = parts.database
  await restart(parts)
  for (const runnerId of await listEmptied(sql)) {
    let places = mostAtOnce - (await countArchiving(sql, runnerId))
    for (const row of places > 0 ? await listToMove(sql, runnerId, parts.clock.now()) : []) {
      // Ends the loop if the operator no longer wants this runner to be emptied.
      if (places === 0 || !(await findEmptied(sql, runnerId))) break
      if (await move(parts, row)) places -= 1
    }
  }
}
