// Gives up the sandboxes of a lost runner. If the store has a copy of a sandbox's disk, the sandbox becomes archived and can
// start elsewhere. Otherwise the sandbox becomes `error`, until the runner reconnects and reports the sandbox.
import type { RunningParts } from '#src/control/running.ts'
import { addLeftover } from '../record/leftovers.ts'
import type { SandboxRow } from '../record/sandbox.ts'
import { copyInStore } from '../record/saves.ts'
import { listToGiveUp, type StateChange, writeState } from '../record/store.ts'

const by = { kind: 'timer', id: 'lost-runner' } as const

/** Maximum number of sandboxes of one lost runner that one sweep sets to `archived` or `error`. */
const mostAtOnce = 500

type LostRunner = { id: string; lastHeartbeatAt: Date }

const changeOf = (row: SandboxRow, runner: LostRunner, now: Date): StateChange => {
  const since = runner.lastHeartbeatAt.toISOString()
  const copy = copyInStore(row)
  if (copy === undefined) {
    const reason = `Its host "${runner.id}" has not answered since ${since} and is given up. If the host comes back, this sandbox may come back too.`
    return { to: 'error', by, reason, set: { error_reason: reason, recoverable: true } }
  }
  return {
    to: 'archived',
    by,
    reason: `Its host "${runner.id}" has not answered since ${since} and is given up. The copy in the store can be started.`,
    set: {
      ...copy,
      ...{ error_reason: null, recoverable: null, resize_from: null, runner_id: null },
      ...{ desired_state: 'archived', generation: row.generation + 1 },
      stopped_at: row.state === 'stopped' ? row.stopped_at : now,
    },
  }
}

/**
 * Sets at most `mostAtOnce` sandboxes of a lost runner to `archived` or `error`. The next sweep handles the others, and sandboxes
 * that changed meanwhile.
 */
export const giveUpOn = async ({ database, clock, changes }: RunningParts, runner: LostRunner): Promise<void> => {
  const now = clock.now()
  for (const row of await listToGiveUp(database.sql, runner.id, mostAtOnce)) {
    // A sandbox that is in `error` already, and has no copy in the store, stays as it is and keeps its error reason.
    if (row.state === 'error' && copyInStore(row) === undefined) continue
    const written = await database.transaction(async (transaction) => {
      const moved = await writeState(transaction, row, changeOf(row, runner, now), now)
      if (moved?.state === 'archived') {
        await addLeftover(transaction, { sandboxId: row.id, runnerId: runner.id, generation: moved.generation })
      }
      return moved
    })
    if (written) changes.announce(row.state, written)
  }
}
