import type { Actor } from '#src/control/auth/actor.ts'
import { checkNotSuspended } from '#src/control/people/organization.ts'
import type { RunningParts } from '#src/control/running.ts'
import { Problem } from '#src/problems.ts'
import type { SandboxRow } from '../record/sandbox.ts'
import { getSandbox } from '../record/store.ts'
import { moveSandbox } from './move.ts'
import { findRunnerForArchived } from './start.ts'

/** Brings a sandbox in `error` to the state `started` or, with `skipStart`, to `stopped`. */
export const recoverSandbox = async (
  parts: RunningParts,
  actor: Actor,
  idOrName: string,
  { skipStart }: { skipStart: boolean },
): Promise<SandboxRow> => {
  checkNotSuspended(parts, actor)
  const sandbox = await getSandbox(parts.database.sql, actor.organization.id, idOrName)
  if (sandbox.state === 'error' && (!sandbox.recoverable || sandbox.desired_state === 'destroyed')) {
    throw new Problem(
      'bad_request',
      `This sandbox cannot be recovered: ${sandbox.error_reason ?? 'it can only be deleted'}`,
    )
  }
  if (sandbox.state === 'error' && sandbox.archived_at === null && sandbox.runner_lost_at) {
    const since = sandbox.runner_heartbeat_at?.toISOString()
    const host = `The host "${sandbox.runner_id}" of this sandbox has not answered since ${since}.`
    throw new Problem('conflict', `${host} The sandbox can be recovered when the host is back.`)
  }
  return await moveSandbox(parts, sandbox, skipStart ? 'recover-stopped' : 'recover', {
    by: { kind: 'user', id: actor.user.id },
    // The column `resize_from` keeps the size before a resize that took too long. If the runner still refuses the resize, control
    // restores this size.
    set: ({ resize_from }) => ({ resize_from }),
    // After a failed restore, control chooses a runner again: the failure may have been the fault of the first runner.
    check: async (transaction, found) => ({
      runner_id: await findRunnerForArchived(transaction, found, parts.options),
    }),
    checksWhen: ({ archived_at }) => archived_at !== null && !skipStart,
  })
}
