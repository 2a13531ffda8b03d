// What must be there before anybody can call: a region with its runner, the default snapshot and, on a server without any user, the
// first administrator with an organization and a key. Runs at every start and changes only what is missing.
import { allPermissions } from './auth/permissions.ts'
import { hashKey, maskKey } from './auth/secret.ts'
import { makePersonalOrganization } from './organizations/personal.ts'
import type { Parts } from './parts.ts'
import { ensureRunner } from './runners/service.ts'
import type { Transaction } from './storage/database.ts'

export const localRegionId = 'local'
export const localRunnerId = 'local'

const lock = 7_305_521

/** Answers whether the first administrator was made now. */
export const bootstrap = async (
  { database, clock, settings, log }: Omit<Parts, 'encryption'>,
  firstKey: string | undefined,
): Promise<boolean> =>
  await database.transaction(async (transaction) => {
    await transaction`select pg_advisory_xact_lock(${lock})`
    await transaction`
      insert into regions (id, name, region_type) values (${localRegionId}, 'local', 'shared') on conflict do nothing`
    await transaction`
      insert into snapshots (general, name, state, image, cpu, memory_gib, disk_gib)
      values (true, ${settings.defaultSnapshot}, 'active', 'default', 1, 1, 3) on conflict do nothing`
    const runner = { id: localRunnerId, regionId: localRegionId, keyHash: settings.runnerKeyHash }
    await ensureRunner(transaction, runner, clock.now())
    const [someone] = await transaction`select 1 from users limit 1`
    if (someone || firstKey === undefined) return false
    await makeFirstAdministrator(transaction, firstKey)
    log.info('made the first administrator and their key')
    return true
  })

const makeFirstAdministrator = async (transaction: Transaction, firstKey: string) => {
  const [user] = await transaction<{ id: string }[]>`
    insert into users (name, email, email_verified, email_verified_by, system_role)
    values ('Administrator', 'admin@localhost', true, 'admin', 'admin') returning id`
  const userId = user!.id
  const organizationId = await makePersonalOrganization(transaction, userId)
  await transaction`
    insert into api_keys (organization_id, user_id, name, hash, masked_value, permissions)
    values (${organizationId}, ${userId}, 'first', ${hashKey(firstKey)}, ${maskKey(firstKey)}, ${allPermissions})`
}
