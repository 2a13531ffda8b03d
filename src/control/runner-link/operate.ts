// The operator's actions on runners: add, view, drain, give up, remove.
import { hashKey } from '#src/control/auth/secret.ts'
import { localRunnerId } from '#src/control/bootstrap.ts'
import type { HostAuthority } from '#src/control/hosts/authority.ts'
import { endCertificates, newToken } from '#src/control/hosts/join.ts'
import { findSharedRegion } from '#src/control/regions/service.ts'
import { silentBefore } from '#src/control/runners/leases.ts'
import type { CreateRunner, UpdateScheduling } from '#src/control/runners/schemas.ts'
import {
  declareLost,
  decommission,
  hasReadyNeighbour,
  insertRunner,
  listRunners,
  lockRunner,
  type RunnerView,
  writeDrained,
} from '#src/control/runners/service.ts'
import { forgetRefusals, readProgress } from '#src/control/sandboxes/record/emptying.ts'
import { statesHoldingDisk } from '#src/control/sandboxes/record/lifecycle.ts'
import { endOnRunner } from '#src/control/sandboxes/upkeep/runner-gone.ts'
import { loseSnapshotsOf } from '#src/control/snapshots/of-runner.ts'
import { isDuplicate, type Transaction } from '#src/control/storage/database.ts'
import { holdVolumesOn, loseVolumesOf } from '#src/control/volumes/of-runner.ts'
import { Problem } from '#src/problems.ts'
import type { RunningParts } from '../running.ts'
import { giveUpOnLost } from './leases.ts'

/**
 * Registers a runner and returns its token. The runner gets sandboxes only after its program has connected to control
 * with this token.
 */
export const addRunner = async (
  parts: RunningParts,
  authority: HostAuthority | undefined,
  { name: id, regionId = 'local' }: CreateRunner,
) => {
  const { database, clock } = parts
  if (!/^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?$/.test(id)) {
    throw new Problem('bad_request', 'name may only hold small letters, digits and dashes, and no dash at an end')
  }
  if ((await findSharedRegion(parts, regionId)) === undefined) {
    throw new Problem('bad_request', `There is no shared region "${regionId}".`)
  }
  const apiKey = newToken(authority)
  try {
    await insertRunner(database.sql, { id, regionId, keyHash: hashKey(apiKey) }, clock.now())
  } catch (error) {
    if (!isDuplicate(error)) throw error
    throw new Problem('already_exists', `A runner "${id}" already exists, or existed before. Choose another name.`, {
      cause: error,
    })
  }
  return { id, regionId, apiKey }
}

const noSuchRunner = () => new Problem('not_found', 'There is no such runner.')

const asView = ({ started, ...runner }: RunnerView) => ({
  ...{ id: runner.id, name: runner.id, region: runner.regionId, state: runner.state },
  ...{ unschedulable: runner.state === 'disabled', isEmptied: runner.isEmptied },
  ...{ cpu: runner.cpu, memory: runner.memoryGiB, disk: runner.diskGiB },
  currentStartedSandboxes: started,
  currentAllocatedCpu: runner.allocatedCpu,
  currentAllocatedMemoryGiB: runner.allocatedMemoryGiB,
  currentAllocatedDiskGiB: runner.allocatedDiskGiB,
  ...{ sandboxes: runner.sandboxes, warm: runner.warm, tags: [], runnerClass: 'container' },
  ...{ version: runner.version, apiVersion: '0' },
  ...(runner.silentSince === null ? {} : { silentSince: runner.silentSince.toISOString() }),
  ...(runner.lostAt === null ? {} : { lostAt: runner.lostAt.toISOString() }),
  ...{ givenUp: runner.givenUp, leftovers: runner.leftovers },
  ...(runner.lastHeartbeatAt === null ? {} : { lastChecked: runner.lastHeartbeatAt.toISOString() }),
  createdAt: runner.createdAt.toISOString(),
  updatedAt: runner.updatedAt.toISOString(),
})

export const viewRunners = async ({ database }: RunningParts, regionId?: string) =>
  (await listRunners(database.sql, { regionId: regionId ?? null })).map(asView)

/** Finds a runner. Throws 404 if the runner does not exist. */
export const viewRunner = async ({ database }: RunningParts, id: string) => {
  const [runner] = await listRunners(database.sql, { id })
  if (runner === undefined) throw noSuchRunner()
  return asView(runner)
}

/** Finds the runner that has the disk of a sandbox of any organization. Throws 404 if no runner has the disk. */
export const viewRunnerOf = async (parts: RunningParts, sandboxId: string) => {
  const [sandbox] = await parts.database.sql<[{ runner_id: string | null }?]>`
    select runner_id from sandboxes where id = ${sandboxId} and state in ${parts.database.sql(statesHoldingDisk)}`
  if (sandbox === undefined || sandbox.runner_id === null) throw new Problem('not_found')
  return viewRunner(parts, sandbox.runner_id)
}

/**
 * Drains a runner or ends the draining. A drained runner gets no new sandboxes; its present sandboxes can be used. With `move`,
 * a sweep also moves them to other runners (`../sandboxes/upkeep/emptying.ts`).
 */
export const scheduleRunner = async (
  parts: RunningParts,
  id: string,
  { unschedulable: isDrained, move: isEmptied = false }: UpdateScheduling,
) => {
  const {
    database: { sql },
    clock,
  } = parts
  if (isEmptied && !isDrained) throw new Problem('bad_request', '`move` needs `unschedulable`.')
  if (isEmptied) {
    await viewRunner(parts, id)
    if (!(await hasReadyNeighbour(sql, id)))
      throw new Problem('conflict', `No other runner of the region of "${id}" is ready to take its sandboxes.`)
    await forgetRefusals(sql, id)
  }
  if (!(await writeDrained(sql, id, { isDrained, isEmptied }, clock.now()))) throw noSuchRunner()
  return viewRunner(parts, id)
}

export const viewEmptying = async (parts: RunningParts, id: string) => {
  const { isEmptied } = await viewRunner(parts, id)
  return { isEmptied, ...(await readProgress(parts.database.sql, id)) }
}

/**
 * Gives up a silent runner, as the operator asks. Its sandboxes with a copy in the store can then start elsewhere.
 * Throws 409 if the runner is not silent, because its sandboxes may be running.
 */
export const loseRunner = async (parts: RunningParts, id: string) => {
  const { database, clock } = parts
  if (!(await declareLost(database.sql, id, silentBefore(parts), clock.now()))) {
    await viewRunner(parts, id)
    throw new Problem(
      'conflict',
      `Runner "${id}" is not silent. If it works, drain it instead. If it was switched off, wait until it is silent.`,
    )
  }
  await giveUpOnLost(parts)
  return viewRunner(parts, id)
}

const countOn = async (transaction: Transaction, id: string): Promise<number> => {
  const [counted] = await transaction<[{ count: number }]>`
    select count(*)::int as count from sandboxes
    where runner_id = ${id} and (state in ${transaction(statesHoldingDisk)} or (state = 'destroyed' and gone_at is null))`
  return counted.count
}

/**
 * Removes a runner other than the server's own. Its token becomes invalid, and its id is never used again. If the runner has
 * volumes or disks of sandboxes, these are lost, and the call needs `force`.
 */
export const removeRunner = async (parts: RunningParts, id: string, isForced: boolean): Promise<void> => {
  const { database, clock, links } = parts
  if (id === localRunnerId) {
    throw new Problem(
      'conflict',
      `Runner "${id}" is the server's own and cannot be removed. Drain the runner, so that it gets no new sandboxes.`,
    )
  }
  await database.transaction(async (transaction) => {
    // Locks the volumes before the runner, in the same order as a create of a sandbox. Another order could cause
    // deadlocks.
    const volumes = await holdVolumesOn(transaction, id)
    if (!(await lockRunner(transaction, id))) throw noSuchRunner()
    const count = isForced ? 0 : await countOn(transaction, id)
    if (count > 0) {
      throw new Problem(
        'conflict',
        `There ${count === 1 ? 'is 1 sandbox' : `are ${count} sandboxes`} on this runner; drain it with move, or delete ${count === 1 ? 'it' : 'them'} first.`,
      )
    }
    if (!isForced && volumes > 0) {
      throw new Problem(
        'conflict',
        `There ${volumes === 1 ? 'is 1 volume' : `are ${volumes} volumes`} on this runner; delete ${volumes === 1 ? 'it' : 'them'} first.`,
      )
    }
    const now = clock.now()
    await decommission(transaction, id, now)
    await endCertificates(transaction, id)
    await loseVolumesOf(transaction, id, now)
    await loseSnapshotsOf(transaction, id, now)
  })
  links.drop(id)
  await endOnRunner(parts, id)
}
