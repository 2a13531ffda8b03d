// Creates what must exist before the first call, such as a region and the default snapshot. Each start adds what is missing.
// A server without users also gets its first administrator. A new ALCOVE_FIRST_KEY replaces the administrator's first key.

import { insertFirstKey, putFirstKey } from './api-keys/first-key.ts'
import { allPermissions } from './auth/permissions.ts'
import { hashKey, maskKey } from './auth/secret.ts'
import { makePersonalOrganization } from './organizations/personal.ts'
import type { Parts } from './parts.ts'
import { ensureSharedRegion } from './regions/service.ts'
import { ensureRunner } from './runners/service.ts'
import { ensureBuiltIn } from './snapshots/write.ts'
import type { Transaction } from './storage/database.ts'
import { insertFirstAdministrator } from './users/service.ts'

export const localRegionId = 'local'
export const localRunnerId = 'local'

const lock = 7_305_521

/** Creates what is missing at a start of control. Returns true if it created the first administrator, who gets `firstKey`. */
export const bootstrap = async (
  { database, clock, settings, log }: Omit<Parts, 'encryption'>,
  firstKey: string | undefined,
): Promise<boolean> =>
  await database.transaction(async (transaction) => {
    await transaction`select pg_advisory_xact_lock(${lock})`
    await ensureSharedRegion(transaction, { id: localRegionId, name: 'local' })
    await ensureBuiltIn(transaction, settings.defaultSnapshot)
    if (settings.runnerKeyHash !== undefined) {
      const runner = { id: localRunnerId, regionId: localRegionId, keyHash: settings.runnerKeyHash }
      await ensureRunner(transaction, runner, clock.now())
    }
    if (firstKey === undefined) return false
    const [someone] = await transaction`select 1 from users limit 1`
    const isNew = await rememberFirstKey(transaction, firstKey)
    if (someone === undefined) {
      await makeFirstAdministrator(transaction, firstKey)
      log.info('made the first administrator and their key')
      return true
    }
    if (isNew && (await replaceFirstKey(transaction, firstKey))) log.info('replaced the key of the first administrator')
    return false
  })

const firstKeyColumns = (firstKey: string) => ({
  hash: hashKey(firstKey),
  maskedValue: maskKey(firstKey),
  permissions: allPermissions,
})

/**
 * Stores the hash of `firstKey` in the table `first_keys`. Returns true if `firstKey` must replace a former key.
 * If the table is empty, nothing is replaced: the server is new, or an older version without the table ran before.
 */
const rememberFirstKey = async (transaction: Transaction, firstKey: string): Promise<boolean> => {
  const [before] = await transaction`select 1 from first_keys limit 1`
  const { count } =
    await transaction`insert into first_keys (hash) values (${hashKey(firstKey)}) on conflict do nothing`
  return before !== undefined && count === 1
}

/**
 * Replaces the first key of the first administrator. That is safe, because only the operator can change ALCOVE_FIRST_KEY.
 * Returns false if there is no administrator, or if an API key with this value exists already.
 */
const replaceFirstKey = (transaction: Transaction, firstKey: string): Promise<boolean> =>
  putFirstKey(transaction, firstKeyColumns(firstKey))

const makeFirstAdministrator = async (transaction: Transaction, firstKey: string) => {
  const userId = await insertFirstAdministrator(transaction)
  const organizationId = await makePersonalOrganization(transaction, userId)
  await insertFirstKey(transaction, { organizationId, userId }, firstKeyColumns(firstKey))
}
