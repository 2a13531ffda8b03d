import type { Actor } from '#src/control/auth/actor.ts'
import type { RunningParts } from '#src/control/running.ts'
import type { SandboxRow } from '../record/sandbox.ts'
import { getSandbox } from '../record/store.ts'
import { moveSandbox } from './move.ts'

/** Asks a started sandbox to stop and returns immediately. `force`: the processes get no time to end after SIGTERM. */
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
