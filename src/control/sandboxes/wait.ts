import type { SandboxState } from '#src/wire/sandbox-state.ts'
import type { SandboxParts } from './parts.ts'
import type { SandboxRow } from './sandbox.ts'
import { findSandboxById } from './store.ts'

/** How long a waiter trusts that it would have been told. */
const lookAgainMilliseconds = 2000

/**
 * Waits until a sandbox has left `state`, at most `timeoutMs`, and answers it as it is then. Listens before it lets
 * anything else run, so that what follows from the caller's own announcement is heard.
 */
export const waitWhile = async (
  { database, changes }: SandboxParts,
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
