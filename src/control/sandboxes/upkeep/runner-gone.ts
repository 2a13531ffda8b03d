// Gives up the sandboxes of a removed runner. A sandbox whose deletion was requested becomes `destroyed`. Any other sandbox becomes
// `archived` if the store has a copy of its disk, otherwise `error`.

import type { RunningParts } from '#src/control/running.ts'
import { forgetLeftoversOn } from '../record/leftovers.ts'
import { leaveRunner } from '../record/notes.ts'
import type { SandboxRow } from '../record/sandbox.ts'
import { copyInStore } from '../record/saves.ts'
import { type StateChange, writeState } from '../record/store.ts'
import { endWithoutRunner } from '../verbs/destroy.ts'

const reason = 'Its runner was taken out of service.'
const by = { kind: 'timer', id: 'runner-gone' } as const

const changeOf = (row: SandboxRow): StateChange => {
  const copy = copyInStore(row)
  return copy === undefined
    ? { to: 'error', by, reason, set: { error_reason: reason, recoverable: false, runner_id: null } }
    : {
        to: 'archived',
        by,
        reason,
        set: {
          ...copy,
          ...{ error_reason: null, recoverable: null, resize_from: null, runner_id: null },
          ...{ desired_state: 'archived', generation: row.generation + 1 },
        },
      }
}

/**
 * Sets each sandbox of a removed runner to `destroyed`, `archived` or `error`. Skips a sandbox that another process changes
 * meanwhile. The next call handles this sandbox.
 */
export const endOnRunner = async (parts: RunningParts, runnerId: string): Promise<void> => {
  const { database, clock, changes } = parts
  const { sql } = database
  const now = clock.now()
  await forgetLeftoversOn(sql, runnerId)
  await leaveRunner(sql, runnerId, now)
  for (const row of await sql<SandboxRow[]>`select * from sandboxes where runner_id = ${runnerId}`) {
    if (row.desired_state === 'destroyed') {
      await endWithoutRunner(parts, row, by)
      continue
    }
    const written = await writeState(sql, row, changeOf(row), now)
    if (written) changes.announce(row.state, written)
  }
}
