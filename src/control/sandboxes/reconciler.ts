// Brings what should be to the runners: at every change, and again by sweeping for whatever is still not done.
// It takes no input but the rows, and may say everything twice.
import type { RunnerLinks } from '#src/control/runners/links.ts'
import type { SandboxState } from '#src/wire/sandbox-state.ts'
import type { SandboxParts } from './parts.ts'
import { asAssignment, type SandboxRow } from './sandbox.ts'
import { findSandboxById, listUnderWay } from './store.ts'

const askAgainSeconds = 5

/**
 * Its runner has something to do or, where a sandbox ended by itself, must know that it shall stay so. Not after an
 * error: that waits for a person, or for the sweep, or a runner that cannot would be asked without a pause.
 */
const isForRunner = (from: SandboxState | null, row: SandboxRow): boolean =>
  row.state !== 'error' && (row.desired_state !== row.state || (from === 'started' && row.state === 'stopped'))

/** Pushes changed sandboxes to the runners that are linked to this process, until the answer is called. */
export const startPushing = ({ database, changes, log }: SandboxParts, links: RunnerLinks): (() => void) =>
  changes.hear(({ sandboxId, runnerId, from, row }) => {
    if (runnerId === null || !links.has(runnerId)) return
    if (row) {
      if (isForRunner(from, row)) links.push(runnerId, asAssignment(row))
      return
    }
    findSandboxById(database.sql, sandboxId).then(
      (found) => found && isForRunner(from, found) && links.push(runnerId, asAssignment(found)),
      (error) => log.warn({ err: error, sandboxId }, 'a change could not be pushed; the sweep will'),
    )
  })

/** Says again what was said some time ago and has not been done. */
export const sweepPushes = async ({ database, clock }: SandboxParts, links: RunnerLinks): Promise<void> => {
  const runnerIds = links.ids()
  if (runnerIds.length === 0) return
  const before = new Date(clock.now().getTime() - askAgainSeconds * 1000)
  for (const row of await listUnderWay(database.sql, runnerIds, before)) {
    if (row.runner_id !== null) links.push(row.runner_id, asAssignment(row))
  }
}
