import type { Actor } from '#src/control/auth/actor.ts'
import type { RunningParts } from '#src/control/running.ts'
import type { SandboxRow } from '../record/sandbox.ts'
import { getSandbox } from '../record/store.ts'
import { moveSandbox } from './move.ts'

/**
 * Requests the stop of a sandbox from its runner, and returns immediately. With `force`, the processes get SIGKILL
 * immediately, without a SIGTERM before.
 */
export const stopSandbox = async (
  parts: RunningParts,
  actor: Actor,
  idOrName: string,
  { force }: { force: boolean },
): Promise<SandboxRow> => {
  const sandbox = await getSandbox(parts.database.sql, actor.organization.id, idOrName)
  return await moveSandbox(parts, sandbox, 'stop', {
    by: { kind: 'user', id: actor.user.id },
    set: () => ({ stop_signal: force ? 'SIGKILL' : 'SIGTERM' }),
  })
}
