// Carries out a verb on a sandbox by the table in lifecycle.ts: writes the new state and announces the change.
import { checkTotals, mayGrow } from '#src/control/quotas/service.ts'
import type { RunningParts } from '#src/control/running.ts'
import type { Sql, Transaction } from '#src/control/storage/database.ts'
import { noSandbox, Problem } from '#src/problems.ts'
import { isAlreadyDone, type Move, moveFor, type Verb } from '../record/lifecycle.ts'
import type { SandboxRow } from '../record/sandbox.ts'
import { type By, findSandboxById, writeState } from '../record/store.ts'

const mostAttempts = 10

/** Who makes a move and why, as the timeline shows it. */
export type Occasion = {
  by: By
  reason?: string
  /** Set by timers: a move is written only if a timer is still due. The row's version does not show that a timer was postponed. */
  whileDue?: boolean
}

type MoveOptions = Occasion & {
  /** Returns columns that the move writes together with the state. */
  set?: (sandbox: SandboxRow) => Partial<SandboxRow>
  /** Runs in the move's transaction before the write. `check` may refuse the move, write related rows, and return more columns. */
  check?: (transaction: Transaction, sandbox: SandboxRow) => Promise<Partial<SandboxRow>>
  /**
   * Returns whether `check` must run. Default: always. A move that needs neither a check nor more quota is written
   * without a transaction.
   */
  checksWhen?: (sandbox: SandboxRow) => boolean
}

/** Thrown if another process changed the row first. The error rolls back the related rows that the option `check` wrote. */
class Overtaken extends Error {}

/** The columns that every move writes: the new desired state, a new generation, and no error. */
const intent = (sandbox: SandboxRow, move: Move): Partial<SandboxRow> => ({
  desired_state: move.to,
  generation: sandbox.generation + 1,
  error_reason: null,
  recoverable: null,
  stop_signal: 'SIGTERM',
  resize_from: null,
  emptying: null,
})

/**
 * Makes the verb's move from the state in `found`. Throws if the move would exceed the organization's quota. If the sandbox has
 * changed meanwhile, decides again with the new row. For a timer, returns `found` instead: the next sweep tries again.
 */
export const moveSandbox = async (
  { database, clock, changes }: RunningParts,
  found: SandboxRow,
  verb: Verb,
  { by, reason, whileDue = false, set, check, checksWhen = () => true }: MoveOptions,
): Promise<SandboxRow> => {
  let sandbox = found
  for (let attempt = 0; attempt < mostAttempts; attempt++) {
    if (isAlreadyDone(verb, sandbox.state)) return sandbox
    const move = moveFor(verb, sandbox)
    const from = sandbox
    const write = (sql: Sql, more: Partial<SandboxRow> = {}) => {
      const columns = { ...intent(from, move), ...set?.(from), ...more }
      const change = { to: move.through, by, reason: reason ?? null, set: columns, whileDue }
      return writeState(sql, from, change, clock.now())
    }
    const isChecked = check !== undefined && checksWhen(from)
    const moved =
      isChecked || mayGrow(from, move)
        ? await database
            .transaction(async (transaction) => {
              const written = await write(transaction, isChecked ? await check(transaction, from) : {})
              if (!written) throw new Overtaken()
              await checkTotals(transaction, { from, written, to: move.to })
              return written
            })
            .catch((error) => {
              if (error instanceof Overtaken) return undefined
              throw error
            })
        : await write(database.sql)
    if (moved) {
      changes.announce(from.state, moved)
      return moved
    }
    if (by.kind === 'timer') return found
    const again = await findSandboxById(database.sql, sandbox.id)
    if (!again) throw noSandbox(sandbox.id)
    sandbox = again
  }
  throw new Problem('changing', 'The sandbox is changing too fast; try again.')
}
