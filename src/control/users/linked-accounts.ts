// The issuers at which a user may sign in. A user can link an account at a second issuer. The user's e-mail address must be
// verified twice: by the second issuer, and by the first issuer or an operator.

import type { User } from '#src/control/people/user.ts'
import { Problem } from '#src/problems.ts'
import { announceCredentialChange, type Callers } from '../auth/callers.ts'
import type { Caller } from '../auth/route.ts'
import type { Parts } from '../parts.ts'
import { countSignIns, linkIdentity, listLinked, unlinkIdentity } from './store.ts'

export type UserParts = Pick<Parts, 'database' | 'settings'> & { callers: Callers }

/** Returns the URL of an issuer as a path segment: `https://id.example.com/realms/a` becomes `id.example.com~realms~a`. */
export const providerName = (issuer: string): string =>
  issuer
    .replace(/^https?:\/\//, '')
    .replace(/\/$/, '')
    .replaceAll('/', '~')

export const listAccountProviders = async ({ database, settings }: UserParts, user: User) => {
  const linked = await listLinked(database.sql, user.id)
  return settings.identity.issuers.map((issuer) => ({
    name: providerName(issuer),
    displayName: new URL(issuer).host,
    provider: providerName(issuer),
    linked: linked.includes(issuer),
  }))
}

const getIssuer = ({ settings }: UserParts, provider: string, unknown: 'bad_request' | 'not_found'): string => {
  const { issuers } = settings.identity
  if (issuers.length === 0)
    throw new Problem('not_found', 'This server has no sign-in provider, so there are no accounts to link.')
  const issuer = issuers.find((known) => providerName(known) === provider)
  if (issuer === undefined) throw new Problem(unknown, 'There is no such provider.')
  return issuer
}

/** Throws 403 if the caller uses an API key, because a key must not change how its user signs in. */
const checkIsSignedIn = ({ keyName }: Caller) => {
  if (keyName !== undefined)
    throw new Problem('forbidden', 'An API key cannot change linked accounts. Sign in to change them.')
}

export const linkAccount = async (
  parts: UserParts,
  caller: Caller,
  { provider, userId: subject }: { provider: string; userId: string },
): Promise<void> => {
  const issuer = getIssuer(parts, provider, 'bad_request')
  checkIsSignedIn(caller)
  const isLinked = await parts.database.transaction(async (transaction) => {
    await announceCredentialChange(transaction)
    return await linkIdentity(transaction, { issuer, subject }, caller.user.id)
  })
  parts.callers.forget()
  // The error does not say why the account cannot be linked. Otherwise callers could find out who has an account at
  // that issuer.
  if (!isLinked) {
    throw new Problem(
      'bad_request',
      'Alcove knows no unlinked account of this provider with your verified e-mail address. Sign in with that account once, then link it.',
    )
  }
}

export const unlinkAccount = async (
  parts: UserParts,
  caller: Caller,
  { provider, providerUserId: subject }: { provider: string; providerUserId: string },
): Promise<void> => {
  const issuer = getIssuer(parts, provider, 'not_found')
  checkIsSignedIn(caller)
  await parts.database.transaction(async (transaction) => {
    await announceCredentialChange(transaction)
    // Locks the user before the user's accounts at issuers are counted. Otherwise two concurrent requests could remove
    // the last two accounts.
    await transaction`select 1 from users where id = ${caller.user.id} for update`
    if (!(await unlinkIdentity(transaction, { issuer, subject }, caller.user.id))) {
      throw new Problem('not_found', 'You have no such account at this provider.')
    }
    if ((await countSignIns(transaction, caller.user.id)) === 0) {
      throw new Problem('bad_request', 'You cannot unlink the only account with which you sign in.')
    }
  })
  parts.callers.forget()
}
