// The timers of sandboxes. `due_at`: the earliest time at which a timer may be due. `dueTimer` decides which timer is due. All
// timers are in the database, so the next sweep makes up for a missed sweep.

import { isRegionAway, silentBefore } from '#src/control/runners/leases.ts'
import type { RunningParts } from '#src/control/running.ts'
import type { Database, Sql } from '#src/control/storage/database.ts'
import { Problem } from '#src/problems.ts'
import { stateRows } from '../record/lifecycle.ts'
import { forgetDestroyed, writeStuckAt } from '../record/notes.ts'
import type { SandboxRow } from '../record/sandbox.ts'
import { type StateChange, withRunner, writeState } from '../record/store.ts'
import { archive } from '../verbs/archive.ts'
import { destroy, endWithoutRunner } from '../verbs/destroy.ts'
import { forgetOldKeys } from '../verbs/idempotency.ts'
import { moveSandbox, type Occasion } from '../verbs/move.ts'
import { pause } from '../verbs/pause.ts'

type Timer = 'ttl' | 'stuck' | 'auto-stop' | 'auto-pause' | 'auto-archive' | 'auto-delete' | 'purge'

const rowsPerSweep = 500
/** Maximum number of automatic archives on one runner at once, which is the runner's own limit (src/runner/keeping/keeper.ts). */
const mostArchiving = 4
const hoursKeptWhenDestroyed = 24

const after = (from: Date | null, minutes: number): number =>
  from === null ? Number.POSITIVE_INFINITY : from.getTime() + minutes * 60_000

/**
 * Returns the timer that is due. The time to live comes first, then the time limit of a move, then the idle timers. The
 * database computes `due_at` by the same rules.
 */
const dueTimer = (row: SandboxRow, now: Date): Timer | undefined => {
  const at = now.getTime()
  if (row.state === 'destroyed') return at >= after(row.gone_at, hoursKeptWhenDestroyed * 60) ? 'purge' : undefined
  if (row.desired_state !== 'destroyed' && at >= after(row.auto_destroy_at, 0)) return 'ttl'
  if (at >= after(row.stuck_at, 0)) return 'stuck'
  return dueWhenIdle(row, at)
}

const dueWhenIdle = (row: SandboxRow, at: number): Timer | undefined => {
  const isDue = (from: Date | null, interval: number) => interval > 0 && at >= after(from, interval)
  switch (row.state) {
    case 'started':
      if (isDue(row.last_activity_at, row.auto_stop_interval)) return 'auto-stop'
      return isDue(row.last_activity_at, row.auto_pause_interval) ? 'auto-pause' : undefined
    case 'stopped':
    case 'archived': {
      const { auto_delete_interval: interval } = row
      if (interval >= 0 && at >= after(row.stopped_at, interval)) return 'auto-delete'
      if (row.state === 'archived' || at < (row.archive_not_before?.getTime() ?? 0)) return undefined
      return isDue(row.stopped_at, row.auto_archive_interval) ? 'auto-archive' : undefined
    }
    default:
      return undefined
  }
}

const minutes = (count: number) => (count === 1 ? '1 minute' : `${count} minutes`)

/** Acts on a due timer. Every branch must change `due_at`. Otherwise the row would be due forever. */
const act = async (parts: RunningParts, row: SandboxRow, timer: Timer): Promise<void> => {
  const occasion = (reason: string) => ({ by: { kind: 'timer', id: timer }, reason, whileDue: true }) as const
  switch (timer) {
    case 'ttl':
      await destroy(parts, row, occasion('Its time to live has passed.'))
      return
    case 'auto-delete':
      await destroy(parts, row, occasion(`Deleted ${minutes(row.auto_delete_interval)} after it stopped.`))
      return
    case 'auto-stop':
      await moveSandbox(
        parts,
        row,
        'stop',
        occasion(`Stopped after ${minutes(row.auto_stop_interval)} without activity.`),
      )
      return
    case 'auto-pause':
      await autoPause(parts, row, occasion)
      return
    case 'auto-archive':
      await archive(parts, row, occasion(`Archived ${minutes(row.auto_archive_interval)} after it stopped.`))
      return
    case 'purge':
      await forgetDestroyed(parts.database.sql, row.id)
      return
    case 'stuck':
      await unstick(parts, row)
  }
}

/** Pauses an idle sandbox, or stops it if the runner cannot pause. An idle sandbox should use no resources. */
const autoPause = async (
  parts: RunningParts,
  row: SandboxRow,
  occasion: (reason: string) => Occasion,
): Promise<void> => {
  const idle = `after ${minutes(row.auto_pause_interval)} without activity.`
  try {
    await pause(parts, row, occasion(`Paused ${idle}`))
  } catch (error) {
    if (!(error instanceof Problem) || error.code !== 'unprocessable') throw error
    await moveSandbox(parts, row, 'stop', occasion(`Stopped ${idle} ${error.message}`))
  }
}

const isAway = async (parts: RunningParts, { region_id: regionId }: SandboxRow): Promise<boolean> => {
  const { sql } = parts.database
  const [row] = await sql<[{ isAway: boolean }]>`select ${isRegionAway(sql, sql`${regionId}::text`, parts)} as "isAway"`
  return row.isAway
}

const unstick = async (parts: RunningParts, row: SandboxRow): Promise<void> => {
  const { database, clock, changes, log } = parts
  const now = clock.now()
  const by = { kind: 'timer', id: 'stuck' } as const
  const rule = stateRows[row.state]
  if (row.state === 'destroying' && row.runner_id === null) {
    await endWithoutRunner(parts, row, by)
    return
  }
  const seconds = rule.stuckAfterSeconds ?? 60
  const isPutOff = rule.whenStuck === 'build_failed' && (await isAway(parts, row))
  const change = ((): StateChange | undefined => {
    if (isPutOff) return undefined
    if (rule.whenStuck === 'build_failed') {
      const reason = `Its image was not ready, or no runner had room for it, within ${seconds} s.`
      return { to: 'build_failed', by, reason, set: { error_reason: reason } }
    }
    if (rule.whenStuck === 'error') {
      const reason = `It was still ${row.state} after ${seconds} s; its runner did not say that it had finished.`
      return { to: 'error', by, reason, set: { error_reason: reason, recoverable: true } }
    }
    // A silent runner cannot report the removal, so control writes `destroyed`. Control's list for the runner contains the sandbox
    // until the runner is back and has deleted the disk.
    if ((row.runner_heartbeat_at?.getTime() ?? 0) < silentBefore(parts).getTime()) {
      return {
        to: 'destroyed',
        by,
        reason: 'Its runner does not answer, and will remove the sandbox when the runner is back.',
        set: { destroyed_at: now },
      }
    }
    return undefined
  })()
  if (change) {
    // The update checks again that the timer is due, because a progress report of the runner may have postponed it.
    const written = await writeState(database.sql, row, { ...change, whileDue: true }, now)
    if (written) changes.announce(row.state, written)
    return
  }
  log.warn({ sandboxId: row.id, state: row.state, seconds }, 'a sandbox is stuck; its runner is asked again')
  await writeStuckAt(database.sql, row, new Date(now.getTime() + seconds * 1000))
}

const dueRow = async (database: Database, id: string, now: Date): Promise<SandboxRow | undefined> => {
  const [row] = await database.sql<SandboxRow[]>`
    ${withRunner(database.sql)} where sandboxes.id = ${id} and sandboxes.due_at <= ${now}`
  return row
}

/**
 * Lists due sandboxes, the most overdue first. Idle timers and automatic archives wait while the runner is silent. Archives also
 * wait while the runner makes `mostArchiving` archives.
 */
const listDue = (sql: Sql, parts: RunningParts, now: Date): Promise<{ id: string }[]> => sql<{ id: string }[]>`
  with due as (
    select sandboxes.id, runner_id, due_at, sandboxes.state = 'started' and not is_at_end as is_idle,
      sandboxes.state = 'stopped' and not is_at_end as is_resting,
      coalesce(last_heartbeat_at < ${silentBefore(parts)}, false) as is_silent
    from sandboxes left join runners on runners.id = runner_id
      cross join lateral (
        select coalesce(auto_destroy_at <= ${now}, false) or (sandboxes.state = 'stopped' and auto_delete_interval >= 0
          and stopped_at + auto_delete_interval * interval '1 minute' <= ${now}) as is_at_end) ends
    where due_at <= ${now}
  ), archiving as (
    select runner_id, count(*) as count from sandboxes where state = 'archiving' and stuck_at is not null group by runner_id
  ), placed as (
    select id, due_at, is_resting,
      row_number() over (partition by runner_id, is_resting order by due_at) + coalesce(count, 0) as place
    from due left join archiving using (runner_id) where not (is_silent and (is_idle or is_resting))
  )
  select id from placed where not is_resting or place <= ${mostArchiving} order by due_at limit ${rowsPerSweep}`

/**
 * Handles every due sandbox once. Several processes may sweep at once: each write checks that the sandbox has not
 * changed. An error at one sandbox does not delay the others.
 */
export const sweepTimers = async (parts: RunningParts): Promise<void> => {
  const { database, clock, log } = parts
  const now = clock.now()
  for (const { id } of await listDue(database.sql, parts, now)) {
    try {
      const row = await dueRow(database, id, now)
      const timer = row && dueTimer(row, now)
      if (row && timer) await act(parts, row, timer)
    } catch (error) {
      log.error({ err: error, sandboxId: id }, 'a timer of this sandbox failed; it is tried again')
    }
  }
  await forgetOldKeys(database.sql, now)
}
