// The operator's actions on runners: add one, drain it, remove it for good.
import { randomBytes } from 'node:crypto'
import { hashKey } from '#src/control/auth/secret.ts'
import { localRunnerId } from '#src/control/bootstrap.ts'
import { findSharedRegion } from '#src/control/regions/service.ts'
import type { CreateRunner } from '#src/control/runners/schemas.ts'
import { decommission, insertRunner, listRunners, lockRunner, writeDrained } from '#src/control/runners/service.ts'
import { statesHoldingDisk } from '#src/control/sandboxes/record/lifecycle.ts'
import { endOnRunner } from '#src/control/sandboxes/upkeep/runner-gone.ts'
import { loseSnapshotsOf } from '#src/control/snapshots/of-runner.ts'
import { isDuplicate, type Transaction } from '#src/control/storage/database.ts'
import { Problem } from '#src/problems.ts'
import type { RunningParts } from '../running.ts'

const newToken = () => `alr_${randomBytes(32).toString('hex')}`

/** Registers a runner. It gets sandboxes once a runner has connected with its token. */
export const addRunner = async (parts: RunningParts, { id, regionId = 'local' }: CreateRunner) => {
  const { database, clock } = parts
  if (!/^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?$/.test(id)) {
    throw new Problem('bad_request', 'id may only hold small letters, digits and dashes, and no dash at an end')
  }
  if ((await findSharedRegion(parts, regionId)) === undefined) {
    throw new Problem('bad_request', `There is no shared region "${regionId}".`)
  }
  const token = newToken()
  try {
    await insertRunner(database.sql, { id, regionId, keyHash: hashKey(token) }, clock.now())
  } catch (error) {
    if (!isDuplicate(error)) throw error
    throw new Problem('already_exists', `There is, or was, a runner "${id}".`, { cause: error })
  }
  return { id, regionId, token }
}

export const viewRunners = async ({ database }: RunningParts) =>
  (await listRunners(database.sql)).map(({ lastHeartbeatAt, ...runner }) => ({
    ...runner,
    lastHeartbeatAt: lastHeartbeatAt?.toISOString() ?? null,
  }))

const noSuchRunner = () => new Problem('not_found', 'There is no such runner.')

/** A drained runner gets no new sandboxes. Its existing sandboxes stay and can be used. */
export const drainRunner = async (parts: RunningParts, id: string, isDrained: boolean): Promise<void> => {
  const { database, clock } = parts
  if (!(await writeDrained(database.sql, id, isDrained, clock.now()))) throw noSuchRunner()
}

const countOn = async (transaction: Transaction, id: string): Promise<number> => {
  const [counted] = await transaction<[{ count: number }]>`
    select count(*)::int as count from sandboxes
    where runner_id = ${id} and (state in ${transaction(statesHoldingDisk)} or (state = 'destroyed' and gone_at is null))`
  return counted.count
}

/**
 * Removes a runner. Its token becomes invalid, and its id is never reused. Other runners can restore its archived sandboxes.
 * Sandboxes with their disk on it are lost, which needs `force`. The server's own runner cannot be removed, because nothing
 * would add it again.
 */
export const removeRunner = async (parts: RunningParts, id: string, isForced: boolean): Promise<void> => {
  const { database, clock, links } = parts
  if (id === localRunnerId) {
    throw new Problem(
      'conflict',
      `Runner "${id}" is the server's own and stays with it; drain it to give it nothing new.`,
    )
  }
  await database.transaction(async (transaction) => {
    if (!(await lockRunner(transaction, id))) throw noSuchRunner()
    const count = isForced ? 0 : await countOn(transaction, id)
    if (count > 0) {
      throw new Problem(
        'conflict',
        `There ${count === 1 ? 'is 1 sandbox' : `are ${count} sandboxes`} on this runner; archive or delete before.`,
      )
    }
    const now = clock.now()
    await decommission(transaction, id, now)
    await loseSnapshotsOf(transaction, id, now)
  })
  links.drop(id)
  await endOnRunner(parts, id)
}
