import type { RunningParts } from '#src/control/running.ts'
import type { SandboxState } from '#src/wire/sandbox-state.ts'
import type { SandboxRow } from '../record/sandbox.ts'
import { findSandboxById } from '../record/store.ts'

/** A waiter reads the database again after this time, in case an announcement was lost. */
const lookAgainMilliseconds = 2000

/**
 * Waits until a sandbox has left `state`, at most `timeoutMs`, and answers it as it is then. Listens before it lets
 * anything else run, so that what follows from the caller's own announcement is heard.
 */
export const waitWhile = async (
  { database, changes }: RunningParts,
  sandbox: SandboxRow,
  state: SandboxState,
  timeoutMs: number,
): Promise<SandboxRow> => {
  const deadline = performance.now() + timeoutMs
  let row = sandbox
  while (row.state === state) {
    const left = deadline - performance.now()
    if (left <= 0) return row
    const heard = await changes.next(sandbox.id, Math.min(left, lookAgainMilliseconds))
    row = heard ?? (await findSandboxById(database.sql, sandbox.id)) ?? row
  }
  return row
}

/**
 * Waits until the runner of a sandbox that was claimed has taken it as it is now, or something else has become of it.
 * A runner that is linked to another process is not waited for: calls into the sandbox wait for it.
 */
export const untilTaken = async (parts: RunningParts, sandbox: SandboxRow, timeoutMs: number): Promise<SandboxRow> => {
  const { changes, links } = parts
  if (sandbox.runner_id === null || !links.has(sandbox.runner_id)) return sandbox
  return (await changes.taken(sandbox, timeoutMs)) ?? sandbox
}
