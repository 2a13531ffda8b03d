// Carries out a verb: finds its move in the table, writes it, and tells who waits.
import type { Transaction } from '#src/control/storage/database.ts'
import { Problem } from '#src/problems.ts'
import { isAlreadyDone, type Move, moveFor, type Verb } from './lifecycle.ts'
import type { SandboxParts } from './parts.ts'
import type { SandboxRow } from './sandbox.ts'
import { type By, findSandboxById, writeState } from './store.ts'

const mostAttempts = 10

export type MoveOptions = {
  by: By
  reason?: string
  /** Columns that change with the state. */
  set?: (sandbox: SandboxRow) => Partial<SandboxRow>
  /** Runs in the move's own transaction before it is written, and may refuse it. */
  check?: (transaction: Transaction, sandbox: SandboxRow) => Promise<void>
}

/** The columns that every move writes: what is wanted now, under a new generation, and a clean slate of errors. */
const intent = (sandbox: SandboxRow, move: Move): Partial<SandboxRow> => ({
  desired_state: move.to,
  generation: sandbox.generation + 1,
  error_reason: null,
  recoverable: null,
})

/**
 * Makes the move of `verb`, starting from the sandbox as it was read. Where somebody else is first it looks again: the
 * verb may by then be done already, or not be possible any more.
 */
export const moveSandbox = async (
  { database, clock, changes }: SandboxParts,
  found: SandboxRow,
  verb: Verb,
  { by, reason, set, check }: MoveOptions,
): Promise<SandboxRow> => {
  let sandbox = found
  for (let attempt = 0; attempt < mostAttempts; attempt++) {
    if (isAlreadyDone(verb, sandbox.state)) return sandbox
    const move = moveFor(verb, sandbox.state)
    const change = {
      to: move.through,
      by,
      reason: reason ?? null,
      set: { ...intent(sandbox, move), ...set?.(sandbox) },
    }
    const from = sandbox
    const moved = check
      ? await database.transaction(async (transaction) => {
          await check(transaction, from)
          return await writeState(transaction, from, change, clock.now(), changes.origin)
        })
      : await writeState(database.sql, from, change, clock.now(), changes.origin)
    if (moved) {
      changes.announce(from.state, moved)
      return moved
    }
    const again = await findSandboxById(database.sql, sandbox.id)
    if (!again) throw new Problem('not_found', 'There is no such sandbox.')
    sandbox = again
  }
  throw new Problem('conflict', 'The sandbox is changing too fast; try again.')
}
