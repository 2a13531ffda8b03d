// Sandboxes that wait for their image (`pending_build`): they go on when a runner has it, or end with it.
import { reserveRunner } from '#src/control/runners/placement.ts'
import type { Transaction } from '#src/control/storage/database.ts'
import { Problem } from '#src/problems.ts'
import type { ImageConfig } from '#src/wire/runner-link.ts'
import { stateRows } from './lifecycle.ts'
import { moveSandbox } from './move.ts'
import type { SandboxParts } from './parts.ts'
import { type SandboxRow, sizeOf } from './sandbox.ts'
import { writeState } from './store.ts'

const mostPlaced = 500
/** Of one organization, with those whose image could not be made: they hold room of no runner that would bound them. */
const mostWaiting = 1000

/** Whether one more may wait; two that ask at the same time may both. */
export const checkMayWait = async (transaction: Transaction, organizationId: string): Promise<void> => {
  const [row] = await transaction<[{ count: number }]>`
    select count(*)::integer as count from (
      select from sandboxes where organization_id = ${organizationId} and state in ('pending_build', 'build_failed')
      limit ${mostWaiting}) waiting`
  if (row.count < mostWaiting) return
  throw new Problem(
    'forbidden',
    `${mostWaiting} sandboxes wait for their image, or have failed for want of it: delete some.`,
  )
}

type Waiting = SandboxRow & { config: ImageConfig; turn: number }

/**
 * Finds a runner for those whose image is there and has said who runs what in it, or for one of them. One without room, or
 * whose organization is suspended or would be above its quota, goes on waiting. Each organization has its turn, so that what
 * never fits keeps nobody else waiting.
 */
export const placeWaiting = async (
  parts: SandboxParts,
  { image, sandboxId }: { image?: string; sandboxId?: string } = {},
): Promise<void> => {
  const { database, clock, options, log } = parts
  const { sql } = database
  const rows = await sql<Waiting[]>`
    select sandboxes.*, images.config,
      row_number() over (partition by organization_id order by sandboxes.created_at)::integer as turn
    from sandboxes join images on images.name = sandboxes.image
    where sandboxes.state = 'pending_build' and config is not null ${image === undefined ? sql`` : sql`and sandboxes.image = ${image}`}
      ${sandboxId === undefined ? sql`` : sql`and sandboxes.id = ${sandboxId}`}
      and exists (select from runners where sandboxes.image = any(runners.images) and runners.state = 'ready'
        and runners.region_id = sandboxes.region_id)
      and not exists (select from organizations where organizations.id = sandboxes.organization_id
        and suspended and (suspended_until is null or suspended_until > ${clock.now()}))
    order by turn, sandboxes.created_at limit ${mostPlaced}`
  for (const { config, turn: _, ...row } of rows) {
    const place = { regionId: row.region_id, image: row.image, ...sizeOf(row) }
    try {
      await moveSandbox(parts, row, 'place', {
        by: { kind: 'timer', id: 'build' },
        reason: 'Its image is there.',
        set: ({ build }) => ({
          os_user: build?.user ?? (config.user || 'root'),
          entrypoint: [...config.entrypoint],
        }),
        check: async (transaction) => ({ runner_id: await reserveRunner(transaction, place, options.overcommit) }),
      })
    } catch (error) {
      // Deleted or placed by somebody else meanwhile, or there is no room now.
      if (!(error instanceof Problem)) log.error({ err: error, sandboxId: row.id }, 'could not be placed')
    }
  }
}

/** Their image cannot be made. Answers them, for the caller to announce once the transaction is over. */
export const failWaiting = async (
  transaction: Transaction,
  image: string,
  reason: string,
  runnerId: string,
  now: Date,
): Promise<SandboxRow[]> => {
  const rows = await transaction<SandboxRow[]>`
    select * from sandboxes where image = ${image} and state = 'pending_build' order by id for no key update`
  const failed: SandboxRow[] = []
  for (const row of rows) {
    const by = { kind: 'runner', id: runnerId } as const
    const change = { to: 'build_failed', by, reason, set: { error_reason: reason } } as const
    const written = await writeState(transaction, row, change, now)
    if (written) failed.push(written)
  }
  return failed
}

/** How far their image has come; as long as it comes further they are not stuck. */
export const showWaiting = async (
  { database }: Pick<SandboxParts, 'database'>,
  image: string,
  progress: NonNullable<SandboxRow['progress']>,
  now: Date,
): Promise<void> => {
  const { sql } = database
  const stuckAt = new Date(now.getTime() + (stateRows.pending_build.stuckAfterSeconds ?? 0) * 1000)
  await sql`
    update sandboxes set progress = ${sql.json(progress)}, stuck_at = ${stuckAt}
    where image = ${image} and state = 'pending_build'`
}
