// What a runner says about one of its sandboxes, and what that changes.
import { Problem } from '#src/problems.ts'
import type { Cause, Report } from '#src/wire/runner-link.ts'
import { destroy } from './destroy.ts'
import { afterReport } from './lifecycle.ts'
import type { SandboxParts } from './parts.ts'
import type { SandboxRow } from './sandbox.ts'
import { findSandboxById, type StateChange, writeState } from './store.ts'

const mostAttempts = 10
const longestReason = 2000

/** A report without a generation comes over the public interface and speaks of what is now. */
export type GivenReport = Omit<Report, 'generation'> & { generation?: number }

/** What a sandbox's own processes may have had a hand in: kept as text that the database can hold, and not for ever. */
const asText = (text: string): string => text.replaceAll('\0', '').toWellFormed().slice(0, longestReason).toWellFormed()

const cleanCause = ({ detail, signal, ...rest }: Cause): Cause => ({
  ...rest,
  ...(detail === undefined ? {} : { detail: asText(detail) }),
  ...(signal === undefined ? {} : { signal: asText(signal) }),
})

const describe = (cause: Cause | undefined): string | undefined => {
  if (cause === undefined) return undefined
  if (cause.detail) return cause.detail
  if (cause.oomKilled) return 'It ran out of memory and was killed.'
  if (cause.signal) return `It was ended by ${cause.signal}.`
  if (cause.exitCode !== undefined) return `Its first process ended with exit code ${cause.exitCode}.`
  return undefined
}

const changeFor = (row: SandboxRow, to: SandboxRow['state'], report: GivenReport, now: Date): StateChange => {
  const cause = report.cause && cleanCause(report.cause)
  const said = report.errorReason === undefined ? describe(cause) : asText(report.errorReason)
  const base = {
    to,
    by: { kind: 'runner', id: row.runner_id ?? '' },
    reason: said ?? null,
    cause: cause ?? null,
  } as const
  switch (to) {
    case 'started':
      return {
        ...base,
        set: { error_reason: null, recoverable: null, stopped_at: null, last_activity_at: now },
      }
    case 'stopped':
      // Where nobody asked for it, being stopped is what is wanted from now on: it must not start again by itself.
      return row.desired_state === 'stopped'
        ? { ...base, set: { error_reason: null, recoverable: null, stopped_at: now } }
        : {
            ...base,
            set: {
              error_reason: said ?? 'It ended by itself.',
              stopped_at: now,
              desired_state: 'stopped',
              generation: row.generation + 1,
            },
          }
    case 'destroyed':
      return { ...base, set: { error_reason: null, recoverable: null, destroyed_at: now, gone_at: now } }
    default: {
      const isLost = report.state === 'destroyed'
      const reason = said ?? (isLost ? 'Its runner no longer has this sandbox.' : 'Its runner gave no reason.')
      return {
        ...base,
        reason,
        set: { error_reason: reason, recoverable: isLost ? false : (report.recoverable ?? false) },
      }
    }
  }
}

/** Takes a report; one that is stale, or about a sandbox of another runner, is refused and changes nothing. */
export const applyReport = async (parts: SandboxParts, runnerId: string, report: GivenReport): Promise<void> => {
  const { database, clock, changes } = parts
  for (let attempt = 0; attempt < mostAttempts; attempt++) {
    const row = await findSandboxById(database.sql, report.sandboxId)
    if (!row || row.runner_id !== runnerId) throw new Problem('not_found', 'This runner has no such sandbox.')
    if (report.generation !== undefined && report.generation !== row.generation) {
      throw new Problem(
        'conflict',
        `This speaks of generation ${report.generation}; the sandbox is at ${row.generation}.`,
      )
    }
    if (row.state === 'destroyed') {
      if (report.state === 'destroyed') await confirmGone(parts, row)
      return
    }
    const to = afterReport(row.state, row.desired_state, report.state)
    if (to === undefined) return
    const written = await writeState(
      database.sql,
      row,
      changeFor(row, to, report, clock.now()),
      clock.now(),
      changes.origin,
    )
    if (!written) continue
    changes.announce(row.state, written)
    if (to === 'stopped' && written.auto_delete_interval === 0) {
      await destroy(parts, written, { kind: 'timer', id: 'auto-delete' }, 'Ephemeral: deleted when it stopped.')
    }
    return
  }
  throw new Problem('conflict', 'The sandbox is changing too fast; report again.')
}

const confirmGone = async ({ database, clock }: SandboxParts, row: SandboxRow): Promise<void> => {
  await database.sql`update sandboxes set gone_at = ${clock.now()} where id = ${row.id} and gone_at is null`
}
