import type { RunningParts } from '#src/control/running.ts'
import type { SandboxState } from '#src/wire/sandbox-state.ts'
import type { SandboxRow } from '../record/sandbox.ts'
import { findSandboxById } from '../record/store.ts'

/** Milliseconds after which a waiter reads the database again, in case an announcement was lost. */
const lookAgainMilliseconds = 2000

/**
 * Waits until a sandbox has left `state`, at most `timeoutMs`. Subscribes before the first `await`. So the function does not miss a
 * change that is announced just after it was called.
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
 * Waits until the runner of a started sandbox has applied a change. Ends early if the sandbox changes again, or if the
 * runner has no link to this process.
 */
export const untilTaken = async (parts: RunningParts, sandbox: SandboxRow, timeoutMs: number): Promise<SandboxRow> => {
  const { changes, links } = parts
  if (sandbox.runner_id === null || !links.has(sandbox.runner_id)) return sandbox
  return (await changes.taken(sandbox, timeoutMs)) ?? sandbox
}
