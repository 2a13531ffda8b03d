// Tells runners which volumes to remove, and applies the runners' reports. Runners make volumes by themselves.
import { listRemovers } from '#src/control/runners/service.ts'
import type { RunningParts } from '#src/control/running.ts'
import type { Sql, Transaction } from '#src/control/storage/database.ts'
import type { VolumeAssignment, VolumeReport } from '#src/wire/runner-link.ts'
import { moveVolumes, type VolumeRow } from './store.ts'

export { holdVolumesOn } from './store.ts'

type Runner = { id: string; regionId: string }

/**
 * Maximum number of volumes in one reply that lists the volumes to remove. The runner reads the list again until the list is empty.
 */
const mostListed = 1000

const isOfRunner = (sql: Sql, runner: Runner) => sql`
  ((driver = 'disk' and runner_id = ${runner.id}) or (driver = 'directory' and region_id = ${runner.regionId}))`

/** Lists the volumes whose files the runner should remove. Volumes whose deletion was requested earliest come first. */
export const listForRunner = async (
  { database: { sql } }: Pick<RunningParts, 'database'>,
  runner: Runner,
): Promise<VolumeAssignment[]> => {
  const rows = await sql<VolumeRow[]>`
    select * from volumes where state = 'pending_delete' and ${isOfRunner(sql, runner)}
    order by updated_at limit ${mostListed}`
  return rows.flatMap(asAssignment)
}

const asAssignment = ({ id, driver }: VolumeRow): VolumeAssignment[] =>
  driver === null ? [] : [{ volumeId: id, driver, target: 'absent' }]

/** Tells a linked runner to remove a volume. Other runners find the removal when they next read the list of their volumes. */
export const pushRemoval = async ({ database, links, log }: RunningParts, volume: VolumeRow): Promise<void> => {
  if (volume.state !== 'pending_delete') return
  try {
    const runners = volume.runner_id === null ? await listRemovers(database.sql, volume.region_id) : [volume.runner_id]
    const runnerId = runners.find((id) => links.has(id))
    if (runnerId === undefined) return
    for (const assignment of asAssignment(volume)) links.say(runnerId, { type: 'volume', assignment })
  } catch (error) {
    log.warn({ err: error, volumeId: volume.id }, 'a removal could not be pushed; the runner finds it in its list')
  }
}

/**
 * Applies a report that a volume was removed. Ignores the report if the volume belongs to another runner or is not to be removed.
 */
export const applyVolumeReport = async (
  { database, clock }: Pick<RunningParts, 'database' | 'clock'>,
  runner: Runner,
  { volumeId }: VolumeReport,
): Promise<void> => {
  const { sql } = database
  await moveVolumes(sql, 'remove', sql`id = ${volumeId} and ${isOfRunner(sql, runner)}`, { now: clock.now() })
}

/** Moves the volumes of a removed runner, whose files are lost, to `error`, or to `deleted` if their deletion was requested. */
export const loseVolumesOf = async (transaction: Transaction, runnerId: string, now: Date): Promise<void> => {
  const reason = 'The runner that had this volume was taken out of service.'
  await moveVolumes(transaction, 'lose-runner', transaction`runner_id = ${runnerId}`, { now, reason })
  await transaction`update volumes set runner_id = null where runner_id = ${runnerId}`
}
