// Sends assignments to the runners at every change of a sandbox. A sweep repeats an assignment until it is completed. All state is
// in the database, so any control process can continue.
import { pushImage } from '#src/control/images/images.ts'
import type { RunningParts } from '#src/control/running.ts'
import { pushSecrets } from '#src/control/secrets/of-runner.ts'
import type { SandboxState } from '#src/wire/sandbox-state.ts'
import type { Change } from '../record/changes.ts'
import { isClaim, isMeant } from '../record/lifecycle.ts'
import { asAssignment, type SandboxRow } from '../record/sandbox.ts'
import { findSandboxById, listUnderWay } from '../record/store.ts'

const askAgainSeconds = 5

/**
 * Returns whether the runner needs an assignment after a change of state. False in `error`: a runner that cannot do the
 * work would get the assignment again and again.
 */
const isForRunner = (from: SandboxState | null, row: SandboxRow): boolean =>
  row.state !== 'error' &&
  (row.desired_state !== row.state ||
    isClaim(from, row.state) ||
    (from !== null && (from === 'resizing' || !isMeant(from, row.state))))

/** Sends the assignment of a sandbox to its runner. In `snapshotting`, also sends the assignment of the snapshot's image. */
const tell = (parts: RunningParts, runnerId: string, row: SandboxRow): void => {
  const push = () => parts.links.push(runnerId, asAssignment(row))
  // The secrets are sent before the assignment, so that the sandbox can use them in its first request.
  if (row.secrets.length === 0) push()
  else
    pushSecrets(parts, runnerId, row)
      .then(push)
      .catch((error) => parts.log.error({ err: error, sandboxId: row.id }, 'an assignment could not be pushed'))
  if (row.state === 'snapshotting' && row.snapshot_image !== null) void pushImage(parts, row.snapshot_image)
}

/**
 * Sends the assignments of changed sandboxes to the runners that are linked to this process. Returns a function that ends the
 * sending.
 */
export const startPushing = (parts: RunningParts): (() => void) => {
  const { database, changes, links, log } = parts
  const push = (
    { sandboxId, runnerId, row }: Pick<Change, 'sandboxId' | 'runnerId' | 'row'>,
    isWanted: (row: SandboxRow) => boolean,
  ) => {
    if (runnerId === null || !links.has(runnerId)) return
    const onRow = (found: SandboxRow | undefined) => {
      if (found && isWanted(found)) tell(parts, runnerId, found)
    }
    if (row) onRow(row)
    else
      findSandboxById(database.sql, sandboxId).then(onRow, (error) =>
        log.warn({ err: error, sandboxId }, 'a change could not be pushed; the sweep will'),
      )
  }
  const stops = [
    changes.hear((change) => push(change, (row) => isForRunner(change.from, row))),
    changes.hearRenewals((renewal) => push(renewal, () => true)),
  ]
  return () => {
    for (const stop of stops) stop()
  }
}

/** Repeats assignments that were sent some time ago and that the runner has not completed. */
export const sweepPushes = async (parts: RunningParts): Promise<void> => {
  const { database, clock, links } = parts
  const runnerIds = links.ids()
  if (runnerIds.length === 0) return
  const before = new Date(clock.now().getTime() - askAgainSeconds * 1000)
  for (const row of await listUnderWay(database.sql, runnerIds, before)) {
    if (row.runner_id !== null) tell(parts, row.runner_id, row)
  }
}
