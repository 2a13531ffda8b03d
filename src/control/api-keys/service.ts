// The rules of API keys: who may make, see and delete them. A key never gives permissions that its maker lacks. A new key may be
// made with an old key. The new key becomes invalid together with the old key, or earlier. The whole key is shown only once, in the
// reply to its creation.

import { lockMembership } from '#src/control/auth/change-membership.ts'
import { findHeld } from '#src/control/auth/permissions-now.ts'
import { Problem } from '#src/problems.ts'
import { announceCredentialChange, type Callers } from '../auth/callers.ts'
import { checkHoldsAll } from '../auth/grant.ts'
import type { Caller } from '../auth/route.ts'
import { hashKey, maskKey, newKey } from '../auth/secret.ts'
import { readDisplayText } from '../display-text.ts'
import { readExpiry } from '../expiry.ts'
import type { Parts } from '../parts.ts'
import { isDuplicate, type Transaction } from '../storage/database.ts'
import type { CreateApiKey } from './schemas.ts'
import {
  type ApiKey,
  countKeys,
  deleteKey,
  findKeyByName,
  holdMaker,
  insertKey,
  listKeys,
  type NewKey,
} from './store.ts'

export { touchKey } from './store.ts'

export type ApiKeysParts = Pick<Parts, 'database' | 'clock'> & { callers: Callers }

const keysPerUser = 500
/** Maximum number of keys per organization. One answer of the API can list all of them. */
const keysPerOrganization = 10_000

/** Names that do not work in a path: `GET /api-keys/current` returns the caller's key, and URL parsers remove `.` and `..`. */
const unreachable = ['current', '.', '..']

const asView = (key: ApiKey) => ({
  name: key.name,
  value: key.maskedValue,
  createdAt: key.createdAt.toISOString(),
  permissions: key.permissions,
  lastUsedAt: key.lastUsedAt?.toISOString() ?? null,
  expiresAt: key.expiresAt?.toISOString() ?? null,
  userId: key.userId,
})

/**
 * Throws 403 if the caller uses an API key without the permission `manage:api_keys`. A signed-in user may always manage
 * their own keys.
 */
const checkManagesOwn = (caller: Caller) => {
  if (caller.keyName !== undefined) checkManages(caller)
}

const checkManages = ({ permissions }: Caller) => {
  if (!permissions.has('manage:api_keys')) throw new Problem('forbidden', 'This needs the permission manage:api_keys.')
}

export const createApiKey = async ({ database, clock }: ApiKeysParts, caller: Caller, input: CreateApiKey) => {
  checkManagesOwn(caller)
  const name = readDisplayText('name', input.name)
  if (unreachable.includes(name))
    throw new Problem('bad_request', `name must not be "${name}": this name does not work in a path`)
  const permissions = [...new Set(input.permissions)]
  checkHoldsAll(caller, permissions)
  const createdAt = clock.now()
  const asked = readExpiry(input.expiresAt, createdAt)
  const value = newKey()
  const key = { name, permissions, createdAt, hash: hashKey(value), maskedValue: maskKey(value) }
  const by = { organizationId: caller.organization.id, userId: caller.user.id, makerHash: caller.keyHash ?? null }
  let expiresAt: Date | null
  try {
    expiresAt = await database.transaction(async (transaction) => {
      const latest = await findLatestEnd(transaction, caller)
      if (asked !== undefined && latest !== null && asked > latest) {
        const end = latest.toISOString()
        throw new Problem(
          'bad_request',
          `expiresAt must not be later than ${end}, when the key that makes this one ends`,
        )
      }
      const end = asked ?? latest
      await insertHeld(transaction, { ...key, ...by, expiresAt: end })
      return end
    })
  } catch (error) {
    if (isDuplicate(error))
      throw new Problem('already_exists', `A key of yours named ${name} already exists.`, { cause: error })
    throw error
  }
  return { name, value, createdAt: createdAt.toISOString(), permissions, expiresAt: expiresAt?.toISOString() ?? null }
}

/** Returns the latest time at which a new key may expire: when the caller's own key expires. Null: no limit. */
const findLatestEnd = async (transaction: Transaction, { keyHash }: Caller): Promise<Date | null> => {
  if (keyHash === undefined) return null
  const maker = await holdMaker(transaction, keyHash)
  if (maker === undefined) throw new Problem('unauthorized')
  return maker.expiresAt
}

/** Inserts an API key while the memberships are locked. Throws 403 if the user does not have every permission of the key. */
const insertHeld = async (transaction: Transaction, key: NewKey): Promise<void> => {
  const { organizationId, userId, permissions } = key
  await lockMembership(transaction, organizationId)
  const held = await findHeld(transaction, organizationId, userId)
  if (held === undefined) throw new Problem('forbidden', 'Only members of the organization have keys in it.')
  checkHoldsAll({ permissions: new Set(held) }, permissions)
  const { ofUser, ofAll } = await countKeys(transaction, organizationId, userId)
  if (ofUser >= keysPerUser) throw new Problem('forbidden', `A user may have ${keysPerUser} keys in an organization.`)
  if (ofAll >= keysPerOrganization) {
    throw new Problem('forbidden', `An organization can have at most ${keysPerOrganization} API keys.`)
  }
  await insertKey(transaction, key)
}

/** Lists API keys. An owner gets the keys of all members, a member only their own. */
export const listApiKeys = async ({ database }: ApiKeysParts, { organization, memberRole, user }: Caller) => {
  const keys = await listKeys(database.sql, organization.id, memberRole === 'owner' ? undefined : user.id)
  return keys.map(asView)
}

export const getApiKey = async ({ database }: ApiKeysParts, { organization, user }: Caller, name: string) => {
  const key = await findKeyByName(database.sql, organization.id, user.id, name)
  if (key === undefined) throw new Problem('not_found', 'You have no key with this name.')
  return asView(key)
}

export const getCurrentApiKey = async (parts: ApiKeysParts, caller: Caller) => {
  if (caller.keyName === undefined) throw new Problem('unauthorized', 'This request came without an API key.')
  return await getApiKey(parts, caller, caller.keyName)
}

export const deleteApiKey = async (
  { database, callers }: ApiKeysParts,
  caller: Caller,
  { userId, name }: { userId: string; name: string },
): Promise<void> => {
  if (userId !== caller.user.id) checkManages(caller)
  // An API key may always delete itself, even without the permission to manage keys.
  else if (name !== caller.keyName) checkManagesOwn(caller)
  const wasThere = await database.transaction(async (transaction) => {
    await announceCredentialChange(transaction)
    return await deleteKey(transaction, caller.organization.id, userId, name)
  })
  callers.forget()
  if (!wasThere) throw new Problem('not_found', 'There is no key with this name.')
}
