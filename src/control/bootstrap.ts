// What must be there before anybody can call: a region with its runner, the default snapshot and, on a server without any user, the
// first administrator with an organization and a key. Runs at every start and changes only what is missing, or that key where it is
// another than ever before.
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

/** True: this database is started with another key than before. Of one that was there before keys were remembered none is. */
const rememberFirstKey = async (transaction: Transaction, firstKey: string): Promise<boolean> => {
  const [before] = await transaction`select 1 from first_keys limit 1`
  const { count } =
    await transaction`insert into first_keys (hash) values (${hashKey(firstKey)}) on conflict do nothing`
  return before !== undefined && count === 1
}

/** Whoever may write the key into the data directory owns the server. False: there is no administrator who would hold it. */
const replaceFirstKey = async (transaction: Transaction, firstKey: string): Promise<boolean> => {
  const { count } = await transaction`
    insert into api_keys (organization_id, user_id, name, hash, masked_value, permissions)
    select organizations.id, users.id, 'first', ${hashKey(firstKey)}, ${maskKey(firstKey)}, ${allPermissions}
    from users join organizations on organizations.created_by = users.id and personal
      join members on members.organization_id = organizations.id and members.user_id = users.id
    where system_role = 'admin' and not exists (select from api_keys where hash = ${hashKey(firstKey)})
    order by email = 'admin@localhost' desc, users.created_at limit 1
    on conflict (organization_id, user_id, name) do update set hash = excluded.hash,
      masked_value = excluded.masked_value, permissions = excluded.permissions, expires_at = null, last_used_at = null`
  return count === 1
}

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
