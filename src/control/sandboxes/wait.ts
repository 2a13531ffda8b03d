import type { SandboxState } from '#src/wire/sandbox-state.ts'
import type { SandboxParts } from './parts.ts'
import type { SandboxRow } from './sandbox.ts'
import { findSandboxById } from './store.ts'

/** How long a waiter trusts that it would have been told. */
const lookAgainMilliseconds = 2000

/** Waits until a sandbox has left `state`, at most `timeoutMs`, and answers it as it is then. */
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
    // Heard from the moment before we look, so that nothing falls between.
    const changed = changes.next(sandbox.id, Math.min(left, lookAgainMilliseconds))
    row = (await findSandboxById(database.sql, sandbox.id)) ?? row
    if (row.state !== state) return row
    await changed
    row = (await findSandboxById(database.sql, sandbox.id)) ?? row
  }
  return row
}
