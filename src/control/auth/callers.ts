// Finds the caller to whom a token belongs, with a cache of at most a second.
// When access changes, every process clears its cache, so the next request with a deleted key is refused.

import type { User } from '#src/control/people/user.ts'
import type { IdentitySettings } from '#src/control/settings/identity.ts'
import type { Clock } from '#src/kit/clock.ts'
import type { Logger } from '#src/kit/log.ts'
import type { Database, Sql } from '../storage/database.ts'
import { credentialChannel } from './announce.ts'
import { keepAnswers } from './answer-cache.ts'
import { isJwt } from './bearer.ts'
import type { Claims } from './claims.ts'
import { createIssuers, type OwnIssuer } from './issuers.ts'
import { allPermissions, type Permission } from './permissions.ts'
import type { Caller } from './route.ts'
import { hashKey, isSameHash } from './secret.ts'
import { asPerson, findStanding, type Standing } from './standing.ts'
import { findKey, type KnownKey } from './store.ts'

export { announceCredentialChange } from './announce.ts'

const touchSeconds = 10

/** A user with a valid credential, before the organization of the call is known. */
export type Holder = {
  user: User
  /**
   * Returns the user as a caller in this organization. Default: the organization of the API key, or the user's personal
   * organization. Returns `undefined` if the user may not act there, or if the organization does not exist.
   */
  in: (organizationId: string | undefined) => Promise<Caller | undefined>
}

export type Callers = {
  /** Finds the user of a token. `undefined` if the token is no valid credential of a user. */
  find: (token: string) => Promise<Holder | undefined>
  /**
   * Finds a caller by the ids in the caller's credentials for uploads, with the permissions of this moment.
   * Returns `undefined` if the API key has expired, or if the key, the user or the membership was deleted.
   */
  findAgain: (known: {
    userId: string
    organizationId: string
    keyHash?: string | undefined
  }) => Promise<Caller | undefined>
  /**
   * Clears the cache of callers. Call this after a change of keys, members, roles, users or organizations has been
   * committed.
   */
  forget: () => void
}

/** Functions of the module `users` that authentication needs. */
type People = {
  findById: (sql: Sql, userId: string) => Promise<User | undefined>
  /** Returns the user whom a verified token describes. If there is no such user yet, creates the user. */
  signIn: (database: Database, claims: Claims, now: Date) => Promise<User>
}

type CallersParts = {
  database: Database
  clock: Clock
  log: Logger
  settings: { identity: IdentitySettings }
  own: readonly OwnIssuer[]
  people: People
  /** Records that an API key was used at `now`, unless a use within the last `seconds` is recorded already. */
  touchKey: (sql: Sql, hash: string, now: Date, seconds: number) => Promise<void>
}

export const createCallers = async ({
  database,
  clock,
  log,
  settings,
  own,
  people,
  touchKey,
}: CallersParts): Promise<Callers> => {
  const { sql } = database.keyed
  const { identity } = settings
  const issuers = createIssuers({ identity, clock, log, own })
  const keys = keepAnswers<KnownKey | undefined>()
  const signedIn = keepAnswers<{ user: User; expiresAt: Date } | undefined>()
  const standings = keepAnswers<Standing | undefined>()

  const forget = () => {
    for (const kept of [keys, signedIn, standings]) kept.forget()
  }
  await database.listen(credentialChannel, forget, forget)

  const touch = ({ hash, lastUsedAt }: KnownKey) => {
    const now = clock.now()
    if (lastUsedAt !== null && now.getTime() - lastUsedAt.getTime() < touchSeconds * 1000) return
    touchKey(sql, hash, now, touchSeconds).catch((error: unknown) => log.warn({ err: error }, 'a use was not noted'))
  }

  const askForKey = async (hash: string): Promise<KnownKey | undefined> => {
    const found = await findKey(sql, hash)
    const key = found !== undefined && isSameHash(found.hash, hash) ? found : undefined
    if (key !== undefined) touch(key)
    return key
  }

  const findKeyHolder = async (token: string): Promise<Holder | undefined> => {
    const hash = hashKey(token)
    const key = await keys.get(hash, () => askForKey(hash))
    if (key === undefined || isOver(key)) return undefined
    const caller = asCaller(key)
    return {
      user: key.user,
      in: async (organizationId = key.organization.id) => (organizationId === key.organization.id ? caller : undefined),
    }
  }

  const askForPerson = async (token: string) => {
    const claims = await issuers.verify(token)
    if (claims === undefined) return undefined
    const isOwn = own.some(({ url }) => url === claims.issuer)
    const user = isOwn ? await people.findById(sql, claims.subject) : await people.signIn(database, claims, clock.now())
    return user && { user, expiresAt: claims.expiresAt }
  }

  const findPerson = async (token: string): Promise<Holder | undefined> => {
    const person = await signedIn.get(hashKey(token), () => askForPerson(token))
    const skewMilliseconds = identity.clockSkewSeconds * 1000
    if (person === undefined || person.expiresAt.getTime() + skewMilliseconds <= clock.now().getTime()) return undefined
    const { user } = person
    return {
      user,
      in: async (organizationId) => {
        // PostgreSQL refuses texts with a NUL character, so no organization has an id with NUL.
        if (organizationId?.includes('\0')) return undefined
        const question = `${user.id} ${organizationId ?? ''}`
        const standing = await standings.get(question, () => findStanding(sql, user, organizationId))
        return standing && asPerson(user, standing)
      },
    }
  }

  const isOver = (key: KnownKey) => key.expiresAt !== null && key.expiresAt <= clock.now()

  const findAgain: Callers['findAgain'] = async ({ userId, organizationId, keyHash }) => {
    if (keyHash !== undefined) {
      const key = await keys.get(keyHash, () => askForKey(keyHash))
      return key === undefined || isOver(key) ? undefined : asCaller(key)
    }
    const user = await people.findById(sql, userId)
    const standing = user && (await findStanding(sql, user, organizationId))
    return user && standing && asPerson(user, standing)
  }

  return { forget, findAgain, find: async (token) => await (isJwt(token) ? findPerson(token) : findKeyHolder(token)) }
}

const asCaller = (key: KnownKey): Caller => {
  const held = new Set<Permission>(key.memberRole === 'owner' ? allPermissions : key.rolePermissions)
  return {
    user: key.user,
    organization: key.organization,
    memberRole: key.memberRole,
    permissions: new Set(key.permissions.filter((permission) => held.has(permission))),
    keyName: key.name,
    keyHash: key.hash,
    keyExpiresAt: key.expiresAt,
  }
}
