// Tokens become callers here. What was found out is kept for at most a second and dropped at once when something that
// decides changes, in whichever process: a deleted key is refused by the next request.
import type { Clock } from '#src/kit/clock.ts'
import type { Logger } from '#src/kit/log.ts'
import type { Database, Sql } from '../storage/database.ts'
import { isJwt } from './bearer.ts'
import { allPermissions, type Permission } from './permissions.ts'
import type { Caller } from './route.ts'
import { hashKey, isSameHash } from './secret.ts'
import { findKey, type KnownKey, touchKey } from './store.ts'

const keepMilliseconds = 1_000
const keepAtMost = 10_000
const touchSeconds = 10
const channel = 'alcove_credentials'

export type Callers = {
  /** Who the token stands for now; `undefined` for anything that is not a valid credential of a user. */
  find: (token: string) => Promise<Caller | undefined>
  /** Call after a change of keys, members, roles, users or organizations has been committed. */
  forget: () => void
}

/** Tells every process, when the transaction commits, that what it knows of credentials is old. */
export const announceCredentialChange = async (sql: Sql): Promise<void> => {
  await sql`select pg_notify(${channel}, '')`
}

export type CallersParts = { database: Database; clock: Clock; log: Logger }

export const createCallers = async ({ database, clock, log }: CallersParts): Promise<Callers> => {
  const { sql } = database
  const known = new Map<string, { key: KnownKey | undefined; until: number }>()
  // Grows when everything is forgotten: an answer that was asked for before is used once but not kept.
  let epoch = 0

  const forget = () => {
    epoch += 1
    known.clear()
  }
  await database.listen(channel, forget, forget)

  const touch = ({ hash, lastUsedAt }: KnownKey) => {
    const now = clock.now()
    if (lastUsedAt !== null && now.getTime() - lastUsedAt.getTime() < touchSeconds * 1000) return
    touchKey(sql, hash, now, touchSeconds).catch((error: unknown) => log.warn({ err: error }, 'a use was not noted'))
  }

  const lookUp = async (hash: string): Promise<KnownKey | undefined> => {
    const kept = known.get(hash)
    if (kept !== undefined && performance.now() < kept.until) return kept.key
    const asked = epoch
    const found = await findKey(sql, hash)
    const key = found !== undefined && isSameHash(found.hash, hash) ? found : undefined
    if (key !== undefined) touch(key)
    if (asked === epoch) {
      if (known.size >= keepAtMost) known.clear()
      known.set(hash, { key, until: performance.now() + keepMilliseconds })
    }
    return key
  }

  return {
    forget,
    find: async (token) => {
      if (isJwt(token)) return undefined // no issuer is trusted yet
      const key = await lookUp(hashKey(token))
      if (key === undefined || (key.expiresAt !== null && key.expiresAt <= clock.now())) return undefined
      return asCaller(key)
    },
  }
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
  }
}
