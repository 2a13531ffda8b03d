import type { RunningParts } from '#src/control/running.ts'
import { Problem } from '#src/problems.ts'
import { moves } from '../record/lifecycle.ts'
import type { SandboxRow } from '../record/sandbox.ts'
import { moveSandbox } from '../verbs/move.ts'

const rowsPerSweep = 500

const stoppable = moves.filter(([on]) => on === 'stop').map(([, from]) => from)

/**
 * Stops the running sandboxes of suspended organizations after the grace period. Failed stops are tried again at the
 * next sweep. Two processes may sweep at the same time.
 */
export const stopSuspended = async (parts: RunningParts): Promise<void> => {
  const { database, clock, log } = parts
  const { sql } = database
  const now = clock.now()
  const rows = await sql<SandboxRow[]>`
    select sandboxes.* from organizations join sandboxes on organization_id = organizations.id
    where suspended and (suspended_until is null or suspended_until > ${now})
      and extract(epoch from ${now}::timestamptz - suspended_at) >= suspension_cleanup_grace_period_hours * 3600.0
      and state in ${sql(stoppable)} and warm_pool_id is null
    order by last_activity_at limit ${rowsPerSweep} for update of sandboxes skip locked`
  for (const row of rows) {
    const by = { kind: 'timer', id: 'suspension' } as const
    try {
      await moveSandbox(parts, row, 'stop', { by, reason: 'Its organization is suspended.' })
    } catch (error) {
      if (!(error instanceof Problem)) log.error({ err: error, sandboxId: row.id }, 'could not be stopped')
    }
  }
}
