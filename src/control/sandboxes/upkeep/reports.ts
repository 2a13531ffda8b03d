// Applies the reports of runners about their sandboxes.

import { noteBase } from '#src/control/images/bases.ts'
import type { RunningParts } from '#src/control/running.ts'
import { Problem } from '#src/problems.ts'
import type { Progress, Report } from '#src/wire/runner-link.ts'
import type { DesiredState } from '#src/wire/sandbox-state.ts'
import { asText, cleanCause, describe } from '../record/cause.ts'
import { removeLeftover } from '../record/leftovers.ts'
import { afterRefusal, afterReport, stateRows, statesUnderWay } from '../record/lifecycle.ts'
import { writeGone, writeProgress } from '../record/notes.ts'
import type { SandboxRow } from '../record/sandbox.ts'
import { findSandboxById, type StateChange, writeState } from '../record/store.ts'
import { destroy } from '../verbs/destroy.ts'

const mostAttempts = 10

/** A report without a generation comes from the public API and is about the current generation. */
type GivenReport = Omit<Report, 'generation'> & { generation?: number }

const wellAgain = { error_reason: null, recoverable: null, resize_from: null } as const

/**
 * Column values which say that a sandbox's disk is on its runner. `archive_id` stays: the store may still have an older archive.
 */
const onRunner = { archived_at: null, archive_not_before: null } as const

/** Returns whether control moves the sandbox off an emptied runner, and will start it again. */
const isMoving = ({ emptying }: SandboxRow): boolean => emptying === 'restart' || emptying === 'restarting'

/**
 * Returns the new value of the column `emptying` (record/columns.ts) when a sandbox has started. `refused`: the runner that control
 * empties could not archive the sandbox, so no sweep tries again.
 */
const emptyingWhenStarted = ({ emptying, archived_at }: SandboxRow): SandboxRow['emptying'] =>
  emptying === null || (emptying === 'restarting' && archived_at !== null) ? null : 'refused'

/** Returns `stopped_at`, from which timers count. Null if control will start the sandbox again, so that no timer deletes it. */
const movedAt = (row: SandboxRow, at: Date): Date | null => (isMoving(row) ? null : at)

const archivedAs = (row: SandboxRow, { archive }: GivenReport, now: Date): Partial<SandboxRow> => ({
  archived_at: row.archived_at ?? now,
  save_state: null,
  // The autoarchive and autodelete timers count from the stop. A sandbox that was archived while running has no stop: its timers
  // count from now.
  stopped_at: movedAt(row, row.stopped_at ?? now),
  ...(archive === undefined
    ? {}
    : {
        archive_id: archive.id,
        archive_sha256: archive.sha256,
        archive_bytes: archive.bytes,
        archive_stored_bytes: archive.storedBytes,
        archive_base: archive.base ?? null,
      }),
})

/** Returns the columns that change when a move of a sandbox has ended in the state `to`. */
const columnsOf = (row: SandboxRow, to: SandboxRow['state'], report: GivenReport, now: Date): Partial<SandboxRow> => {
  switch (to) {
    case 'started':
      return {
        ...onRunner,
        stopped_at: null,
        emptying: emptyingWhenStarted(row),
        last_activity_at: now,
        first_started_at: row.first_started_at ?? now,
      }
    case 'stopped':
      return {
        ...onRunner,
        stopped_at: movedAt(row, row.state === 'archiving' ? (row.stopped_at ?? now) : now),
        // A cause proves that the sandbox has run, so `first_started_at` must be set. Otherwise, the runner would make a new disk
        // if the old disk is missing.
        first_started_at: row.first_started_at ?? (report.cause === undefined ? null : now),
      }
    case 'archived':
      return archivedAs(row, report, now)
    case 'destroyed':
      return { destroyed_at: now, gone_at: now }
    default:
      return {}
  }
}

const changeFor = (row: SandboxRow, to: SandboxRow['state'], report: GivenReport, now: Date): StateChange => {
  const cause = report.cause && cleanCause(report.cause)
  const said = report.errorReason === undefined ? describe(cause) : asText(report.errorReason)
  const by = { kind: 'runner', id: row.runner_id ?? '' } as const
  if (to === 'error') {
    const isLost = report.state === 'destroyed'
    const reason = said ?? (isLost ? 'Its runner no longer has this sandbox.' : 'Its runner gave no reason.')
    const recoverable = isLost ? false : (report.recoverable ?? false)
    return { to, by, reason, cause: cause ?? null, set: { error_reason: reason, recoverable, resize_from: null } }
  }
  const set = { ...wellAgain, ...columnsOf(row, to, report, now) }
  // If nobody requested this stop, the desired state becomes `stopped`, so that the sandbox does not start again by
  // itself.
  if (to === 'stopped' && row.desired_state !== 'stopped') {
    Object.assign(set, {
      error_reason: said ?? 'It ended by itself.',
      desired_state: to,
      generation: row.generation + 1,
      emptying: null,
      stopped_at: now,
    } satisfies Partial<SandboxRow>)
  }
  return { to, by, reason: said ?? null, cause: cause ?? null, set }
}

/** If a runner refuses to archive a sandbox, timers try again after this many minutes. */
const archiveAgainMinutes = 60

/** The change after a refusal: the reported state becomes the desired state, and the reason is stored. */
const refusalFor = (row: SandboxRow, to: SandboxRow['state'], report: GivenReport, now: Date): StateChange => {
  const reason = asText(report.refused ?? '') || 'Its runner refused the change and gave no reason.'
  const { resize_from: before } = row
  return {
    to,
    by: { kind: 'runner', id: row.runner_id ?? '' },
    reason,
    set: {
      ...columnsOf(row, to, report, now),
      resize_from: null,
      recoverable: null,
      error_reason: reason,
      desired_state: to as DesiredState,
      generation: row.generation + 1,
      ...(before ? { cpu: before.cpu, memory_gib: before.memoryGiB, disk_gib: before.diskGiB } : {}),
      // The runner refused to restore an archive. A caller has just tried to start the sandbox, so its timers count from now.
      ...(to === 'archived' ? { stopped_at: movedAt(row, now) } : {}),
      ...(row.state === 'archiving'
        ? { archive_not_before: new Date(now.getTime() + archiveAgainMinutes * 60_000) }
        : {}),
    },
  }
}

const changeAfter = (row: SandboxRow, report: GivenReport, now: Date): StateChange | undefined => {
  if (report.state === 'archived' && !report.archive && row.archive_sha256 === null) {
    throw new Problem('bad_request', 'A sandbox that is archived needs to say where.')
  }
  // A claimed warm sandbox that cannot get the requested size is useless to the create's caller, so it becomes `error`.
  if (report.refused !== undefined && row.state === 'creating') {
    return changeFor(row, 'error', { ...report, state: 'error', errorReason: report.refused }, now)
  }
  // The runner may refuse a resize after control's time limit has passed. By then, the sandbox is in `error` because of the time
  // limit, or is being recovered.
  const isOfResize = row.resize_from !== null && report.state === row.desired_state
  const state = isOfResize ? 'resizing' : row.state
  const refusedTo = report.refused === undefined ? undefined : afterRefusal(state, report.state)
  if (refusedTo) return refusalFor(row, refusedTo, report, now)
  const to = afterReport(row.state, row.desired_state, report.state)
  return to && changeFor(row, to, report, now)
}

/**
 * Finds the sandbox's row in memory, which saves a query. If another process has changed the row since, `applyReport` cannot write,
 * and reads the row.
 */
const findWrittenHere = ({ changes }: RunningParts, runnerId: string, { sandboxId, generation }: GivenReport) => {
  const row = changes.findUnderWay(sandboxId)
  return row?.runner_id === runnerId && row.generation === generation ? row : undefined
}

const getReported = async (
  { database }: RunningParts,
  runnerId: string,
  { sandboxId, generation }: GivenReport,
): Promise<SandboxRow> => {
  const row = await findSandboxById(database.sql, sandboxId)
  if (!row || row.runner_id !== runnerId) throw new Problem('not_found', 'This runner has no such sandbox.')
  if (generation === undefined || generation === row.generation) return row
  throw new Problem('conflict', `This speaks of generation ${generation}; the sandbox is at ${row.generation}.`)
}

/** Returns whether the change may be committed before it is on disk. If a crash loses the change, the runner repeats its report. */
const isToldAgain = ({ to, set }: StateChange) => (to === 'started' || to === 'paused') && set?.generation === undefined

/**
 * Applies a report. Refuses reports about an older generation or another runner's sandbox. Exception: the report that a
 * leftover is destroyed deletes the leftover's row (record/leftovers.ts).
 */
export const applyReport = async (parts: RunningParts, runnerId: string, report: GivenReport): Promise<void> => {
  const { database, clock, changes } = parts
  if (report.state === 'started' && report.refused === undefined && report.generation !== undefined) {
    // A report that confirms a claim changes no state: a warm sandbox is `started` already. Such a report only wakes the create
    // that waits for it.
    if (changes.tellTaken(runnerId, report.sandboxId, report.generation)) return
  }
  if (report.state === 'destroyed' && report.generation !== undefined) {
    const { sandboxId, generation } = report
    if (await removeLeftover(database.sql, { sandboxId, runnerId, generation })) return
  }
  for (let attempt = 0; attempt < mostAttempts; attempt++) {
    const known = attempt === 0 ? findWrittenHere(parts, runnerId, report) : undefined
    const row = known ?? (await getReported(parts, runnerId, report))
    if (row.state === 'destroyed') {
      if (report.state === 'destroyed') await confirmGone(parts, row)
      return
    }
    const now = clock.now()
    const change = changeAfter(row, report, now)
    // A report without a generation comes from a caller of the public API. That caller gets an error if the reported state is
    // impossible.
    const isTold = report.generation === undefined && report.state !== row.state && report.state !== row.desired_state
    if (change === undefined && isTold) {
      throw new Problem('bad_request', `A sandbox that is ${row.state} cannot be ${report.state} by a report.`)
    }
    if (change === undefined && known === undefined) return
    const { base } = report.archive ?? {}
    if (change !== undefined && base !== undefined) await noteBase(database.sql, runnerId, base, now)
    const written =
      change && (await writeState(database.sql, row, { ...change, isToldAgain: isToldAgain(change) }, now))
    if (!written) continue
    changes.announce(row.state, written)
    if (written.state === 'stopped' && written.auto_delete_interval === 0 && !isMoving(written)) {
      await destroy(parts, written, {
        by: { kind: 'timer', id: 'auto-delete' },
        reason: 'Ephemeral: deleted when it stopped.',
      })
    }
    return
  }
  throw new Problem('changing', 'The sandbox is changing too fast; report again.')
}

const confirmGone = async ({ database, clock }: RunningParts, row: SandboxRow): Promise<void> => {
  await writeGone(database.sql, row.id, clock.now())
}

/** Stores the progress of a move. While a move makes progress, its sandbox is not treated as stuck. */
export const applyProgress = async (
  { database, clock }: RunningParts,
  runnerId: string,
  { sandboxId, generation, step, percent }: Progress & { sandboxId: string; generation: number },
): Promise<void> => {
  const row = await findSandboxById(database.sql, sandboxId)
  if (row?.runner_id !== runnerId || row.generation !== generation || !statesUnderWay.includes(row.state)) return
  const progress = { step: asText(step), percent }
  if (row.progress?.step === progress.step && row.progress.percent === percent) return
  const { stuckAfterSeconds } = stateRows[row.state]
  const stuckAt = new Date(clock.now().getTime() + (stuckAfterSeconds ?? 0) * 1000)
  await writeProgress(database.sql, row, { progress, stuckAt })
}
