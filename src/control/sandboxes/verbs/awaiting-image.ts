// Sandboxes that wait for their image. They start when a runner has the image, and become `build_failed` if the image cannot be
// made.
import { reserveRunner } from '#src/control/runners/placement.ts'
import type { RunningParts } from '#src/control/running.ts'
import type { Transaction } from '#src/control/storage/database.ts'
import { holdMounts, placeMounts } from '#src/control/volumes/mounting.ts'
import { Problem } from '#src/problems.ts'
import type { ImageConfig } from '#src/wire/runner-link.ts'
import type { SandboxState } from '#src/wire/sandbox-state.ts'
import { moveFrom, stateRows, statesAwaitingImage } from '../record/lifecycle.ts'
import { writeImageProgress } from '../record/notes.ts'
import { type SandboxRow, sizeOf } from '../record/sandbox.ts'
import { writeState } from '../record/store.ts'
import { moveSandbox } from './move.ts'

/**
 * Maximum numbers of waiting sandboxes that one call of `placeWaiting` reads (`mostLookedAt`) and tries to place
 * (`mostTried`).
 */
const mostLookedAt = 5000
const mostTried = 500
/**
 * Maximum number of an organization's sandboxes that one call of `placeWaiting` tries in vain, for lack of room or quota. The
 * organization's other sandboxes wait for the next call.
 */
const mostRefused = 50
/**
 * Maximum number of an organization's sandboxes that wait for their image, or whose image failed. They are on no
 * runner, so nothing else limits them.
 */
const mostWaiting = 1000

/** Throws if too many sandboxes of the organization wait for their image or have failed. Two simultaneous creates can both pass. */
export const checkMayWait = async (transaction: Transaction, organizationId: string): Promise<void> => {
  const [row] = await transaction<[{ count: number }]>`
    select count(*)::integer as count from (
      select from sandboxes where organization_id = ${organizationId} and state in ${transaction([...statesAwaitingImage, 'build_failed'])}
      limit ${mostWaiting}) waiting`
  if (row.count < mostWaiting) return
  throw new Problem(
    'quota_exceeded',
    `${mostWaiting} sandboxes are waiting for their image, or have failed because they got no image. Delete some of them.`,
  )
}

/** A waiting sandbox, with only the columns that decide whether to look for a runner. A whole row can have 400 KiB. */
type WaitingSandbox = Pick<SandboxRow, 'id' | 'organization_id' | 'image' | 'cpu' | 'memory_gib' | 'disk_gib'>

/**
 * Places waiting sandboxes whose image is on a runner and whose image config is known. `image`, `sandboxId`: only the sandboxes of
 * this image, or this sandbox. A sandbox keeps waiting if no runner has room, or if its organization is at its quota or suspended.
 * Organizations take turns, so that an organization with many sandboxes does not delay the others.
 */
export const placeWaiting = async (
  parts: RunningParts,
  { image, sandboxId }: { image?: string; sandboxId?: string } = {},
): Promise<void> => {
  const { database, clock, log } = parts
  const { sql } = database
  const rows = await sql<WaitingSandbox[]>`
    select id, organization_id, image, cpu, memory_gib, disk_gib from (
      select sandboxes.*, row_number() over (partition by organization_id order by sandboxes.created_at) as turn
      from sandboxes join images on images.name = sandboxes.image
      where sandboxes.state in ${sql(statesAwaitingImage)} and config is not null
        ${image === undefined ? sql`` : sql`and sandboxes.image = ${image}`}
        ${sandboxId === undefined ? sql`` : sql`and sandboxes.id = ${sandboxId}`}
        and exists (select from runners where sandboxes.image = any(runners.images) and runners.state = 'ready'
          and runners.region_id = sandboxes.region_id)
        and not exists (select from organizations where organizations.id = sandboxes.organization_id
          and suspended and (suspended_until is null or suspended_until > ${clock.now()}))
    ) waiting
    order by turn, created_at limit ${mostLookedAt}`
  const refused = new Refused()
  let tried = 0
  for (const row of rows) {
    if (refused.tellsOf(row)) continue
    if (++tried > mostTried) return
    try {
      await place(parts, row.id)
    } catch (error) {
      if (!(error instanceof Problem)) log.error({ err: error, sandboxId: row.id }, 'could not be placed')
      // 503: no runner has room. 403: no quota. Otherwise the sandbox was deleted, or placed by another process.
      else if (error.status === 503 || error.status === 403) refused.add(row)
    }
  }
}

const place = async (parts: RunningParts, id: string): Promise<void> => {
  const { database, options, clock } = parts
  const [found] = await database.sql<(SandboxRow & { config: ImageConfig })[]>`
    select sandboxes.*, images.config from sandboxes join images on images.name = sandboxes.image
    where sandboxes.id = ${id} and sandboxes.state in ${database.sql(statesAwaitingImage)} and config is not null`
  if (found === undefined) return
  const { config, ...row } = found
  const { region_id: regionId, organization_id: organizationId } = row
  await moveSandbox(parts, row, 'place', {
    by: { kind: 'timer', id: 'build' },
    reason: 'Its image is ready.',
    // A sandbox whose column `build` is null is made from a snapshot, and has the user and entrypoint of that snapshot
    // already.
    set: ({ build }) =>
      build === null ? {} : { os_user: build.user ?? (config.user || 'root'), entrypoint: [...config.entrypoint] },
    check: async (transaction) => {
      const mounts = await holdMounts(transaction, { organizationId, regionId }, row.volumes)
      const wanted = { regionId, image: row.image, volumes: mounts?.need, ...sizeOf(row) }
      const runnerId = await reserveRunner(transaction, wanted, options.overcommit)
      if (mounts === undefined) return { runner_id: runnerId }
      return { runner_id: runnerId, volumes: await placeMounts(transaction, mounts, runnerId, clock.now()) }
    },
  })
}

/**
 * Remembers sandboxes whose placement was refused. Control then skips equal or larger sandboxes of the same organization with
 * the same image.
 */
class Refused {
  readonly #ofOne = new Map<string, WaitingSandbox[]>()

  add(row: WaitingSandbox): void {
    this.#ofOne.set(row.organization_id, [...(this.#ofOne.get(row.organization_id) ?? []), row])
  }

  tellsOf({ organization_id, image, cpu, memory_gib, disk_gib }: WaitingSandbox): boolean {
    const others = this.#ofOne.get(organization_id) ?? []
    const isNoSmaller = (other: WaitingSandbox) =>
      other.image === image && cpu >= other.cpu && memory_gib >= other.memory_gib && disk_gib >= other.disk_gib
    return others.length >= mostRefused || others.some(isNoSmaller)
  }
}

/** A sandbox that failed because its image could not be made. `from`: the state in which it waited for the image. */
type FailedSandbox = { from: SandboxState; row: SandboxRow }

/**
 * Sets the sandboxes that wait for an image to `build_failed`. Returns their rows; the caller announces the changes
 * after the transaction.
 */
export const failWaiting = async (
  transaction: Transaction,
  image: string,
  reason: string,
  runnerId: string,
  now: Date,
): Promise<FailedSandbox[]> => {
  const rows = await transaction<SandboxRow[]>`
    select * from sandboxes where image = ${image} and state in ${transaction(statesAwaitingImage)} order by id for no key update`
  const failed: FailedSandbox[] = []
  for (const row of rows) {
    const by = { kind: 'runner', id: runnerId } as const
    const change = { to: 'build_failed', by, reason, set: { error_reason: reason } } as const
    const written = await writeState(transaction, row, change, now)
    if (written) failed.push({ from: row.state, row: written })
  }
  return failed
}

/**
 * Stores the progress of an image in the rows of the sandboxes that wait for it. While there is progress, these sandboxes are not
 * treated as stuck.
 */
export const showWaiting = async (
  { database, changes }: Pick<RunningParts, 'database' | 'changes'>,
  { image, runnerId }: { image: string; runnerId: string },
  progress: NonNullable<SandboxRow['progress']>,
  now: Date,
): Promise<void> => {
  const { sql } = database
  const rows = await sql<SandboxRow[]>`select * from sandboxes where image = ${image} and state = 'pending_build'`
  for (const row of rows) {
    const { through } = moveFrom('begin-build', row.state)
    const change = { to: through, by: { kind: 'runner', id: runnerId }, reason: 'Its image is being made.' } as const
    const written = await writeState(sql, row, change, now)
    if (written) changes.announce(row.state, written)
  }
  const stuckAt = new Date(now.getTime() + (stateRows.building_snapshot.stuckAfterSeconds ?? 0) * 1000)
  await writeImageProgress(sql, image, { progress, stuckAt })
}
