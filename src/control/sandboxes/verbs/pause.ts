import type { Actor } from '#src/control/auth/actor.ts'
import type { RunningParts } from '#src/control/running.ts'
import { Problem } from '#src/problems.ts'
import { isAlreadyDone, moveFor } from '../record/lifecycle.ts'
import type { SandboxRow } from '../record/sandbox.ts'
import { getSandbox } from '../record/store.ts'
import { moveSandbox, type Occasion } from './move.ts'
import { waitWhile } from './wait.ts'

const howToPause = ({ runner_pause }: SandboxRow) => {
  if (runner_pause) return runner_pause
  throw new Problem('unprocessable', 'The runner of this sandbox cannot pause.')
}

/** Freezes all processes of a sandbox. The processes keep their state and can be resumed. */
export const pause = async (parts: RunningParts, sandbox: SandboxRow, occasion: Occasion): Promise<SandboxRow> => {
  if (isAlreadyDone('pause', sandbox.state)) return sandbox
  // The state is checked first, because an error about the state helps the caller more than the error that the runner
  // cannot pause.
  moveFor('pause', sandbox)
  const pauseKind = howToPause(sandbox)
  return await moveSandbox(parts, sandbox, 'pause', {
    ...occasion,
    set: () => ({ pause_kind: pauseKind }),
  })
}

export const pauseSandbox = async (parts: RunningParts, actor: Actor, idOrName: string): Promise<SandboxRow> => {
  const sandbox = await getSandbox(parts.database.sql, actor.organization.id, idOrName)
  await actor.told
  const moved = await pause(parts, sandbox, { by: { kind: 'user', id: actor.user.id } })
  return await waitWhile(parts, moved, 'pausing', parts.options.momentMilliseconds)
}
