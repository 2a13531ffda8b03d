// The volumes of one sandbox: which volumes it mounts, where their files are, and which runners can have the sandbox.
import type { VolumesNeed } from '#src/control/runners/placement.ts'
import type { PlacedMount } from '#src/control/sandboxes/record/columns.ts'
import type { Transaction } from '#src/control/storage/database.ts'
import { Problem } from '#src/problems.ts'
import type { VolumeMount } from '#src/wire/runner-link.ts'
import { noVolume } from './service.ts'
import { holdVolumes, putOnRunner, type VolumeRow } from './store.ts'

export { readMounts } from './mount-paths.ts'

/** The volumes that a sandbox mounts, with their paths. `need`: what the mounts require of the sandbox's runner. */
export type HeldMounts = { mounts: VolumeMount[]; need: VolumesNeed }

const checkReady = ({ name, state, error_reason }: VolumeRow): void => {
  if (state === 'ready') return
  const why = error_reason === null ? '' : `: ${error_reason}`
  throw new Problem(
    'bad_request',
    `The volume "${name}" is in the state ${state}, and sandboxes can only mount a volume that is ready${why}`,
  )
}

const needOf = (volumes: readonly VolumeRow[], regionId: string): VolumesNeed => {
  const elsewhere = volumes.find(({ region_id }) => region_id !== null && region_id !== regionId)
  if (elsewhere)
    throw new Problem(
      'bad_request',
      `The volume "${elsewhere.name}" is in the region "${elsewhere.region_id}", but the sandbox would be in "${regionId}".`,
    )
  const [onDisk, ...others] = volumes.filter(({ driver }) => driver === 'disk')
  const apart = others.find(({ runner_id }) => runner_id !== onDisk?.runner_id)
  if (onDisk && apart)
    throw new Problem(
      'bad_request',
      `The volumes "${onDisk.name}" and "${apart.name}" are on different runners, so no sandbox can mount both.`,
    )
  const inDirectory = volumes.find(({ driver }) => driver === 'directory')
  return {
    name: (onDisk ?? inDirectory ?? volumes[0])?.name ?? '',
    runnerId: onDisk?.runner_id ?? null,
    isInDirectory: inDirectory !== undefined,
    newGiB: volumes.filter(({ driver }) => driver === null).reduce((sum, { size_gib }) => sum + size_gib, 0),
  }
}

/**
 * Locks the volumes of a sandbox until the transaction ends, so that none of them is deleted meanwhile. Call this before
 * runners are locked. Returns `undefined` if the sandbox mounts no volumes.
 */
export const holdMounts = async (
  transaction: Transaction,
  { organizationId, regionId }: { organizationId: string; regionId: string },
  asked: readonly VolumeMount[],
): Promise<HeldMounts | undefined> => {
  if (asked.length === 0) return undefined
  const volumes = await holdVolumes(
    transaction,
    organizationId,
    asked.map(({ volumeId }) => volumeId),
  )
  const mounts = asked.map((mount) => {
    const { volumeId: called } = mount
    const volume = volumes.find(({ id }) => id === called) ?? volumes.find(({ name }) => name === called)
    if (volume === undefined) throw noVolume(called)
    checkReady(volume)
    const { mountPath, subpath } = mount
    return { volumeId: volume.id, mountPath, ...(subpath === undefined ? {} : { subpath }) }
  })
  const used = volumes.filter(({ id }) => mounts.some(({ volumeId }) => volumeId === id))
  return { mounts, need: needOf(used, regionId) }
}

/**
 * Assigns volumes that have no runner yet to the sandbox's runner. Returns the mounts in the form that the runner
 * needs.
 */
export const placeMounts = async (
  transaction: Transaction,
  { mounts }: HeldMounts,
  runnerId: string,
  now: Date,
): Promise<PlacedMount[]> => {
  const ids = [...new Set(mounts.map(({ volumeId }) => volumeId))]
  const volumes = await putOnRunner(transaction, ids, runnerId, now)
  return mounts.map((mount) => {
    const volume = volumes.find(({ id }) => id === mount.volumeId)
    if (!volume?.driver) throw new Error(`The volume ${mount.volumeId} could not be put on the runner ${runnerId}.`)
    const { driver, size_gib: sizeGiB, is_made: isMade } = volume
    return { ...mount, placed: { driver, sizeGiB, ...(isMade ? {} : { isNew: true as const }) } }
  })
}
