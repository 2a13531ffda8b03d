// Turns the claims of an issuer into one of our users. A new person becomes a user with a personal organization; a
// known user is updated.
//
// Somebody whose address belongs to an existing account cannot enter that account by the address alone. The new
// identity waits until the account's owner links it (linked-accounts.ts). There is an exception: if only single sign-on
// vouches for the account's address, the account loses the address to the new person.

import type { User } from '#src/control/people/user.ts'
import { Problem } from '#src/problems.ts'
import { announceCredentialChange } from '../auth/announce.ts'
import type { Claims } from '../auth/claims.ts'
import type { Database, Sql, Transaction } from '../storage/database.ts'
import { admitUser } from './admit.ts'
import {
  findIdentity,
  freeAddress,
  type Identity,
  insertIdentity,
  updateFromIdentity,
  updateIdentity,
} from './store.ts'

/** Whether the token has newer claims than those stored. A token older than the stored claims changes nothing. */
const isNews = ({ saidAt, email, emailVerified, name }: Claims, known: Identity): boolean =>
  saidAt !== undefined &&
  saidAt > known.saidAt &&
  (name !== known.name || (email !== undefined && (email !== known.email || emailVerified !== known.emailVerified)))

/**
 * Gives an address to the person for whom the issuer has verified it. Another account loses the address if only single
 * sign-on vouches for that account.
 */
const claimAddress = async (sql: Transaction, { email, emailVerified }: Claims, ownerId: string | undefined) => {
  if (email !== undefined && emailVerified) await freeAddress(sql, email, ownerId)
}

const takeIn = async (transaction: Transaction, claims: Claims, now: Date): Promise<User | undefined> => {
  const { email, emailVerified, name } = claims
  if (email === undefined) {
    throw new Problem('unauthorized', 'This token names no e-mail address, so its holder cannot be taken in.')
  }
  await claimAddress(transaction, claims, undefined)
  const user = await admitUser(transaction, { email, emailVerified, emailVerifiedBy: 'issuer', name })
  await insertIdentity(transaction, {
    ...claims,
    email,
    saidAt: claims.saidAt ?? now,
    userId: user?.id,
    isSource: true,
  })
  return user
}

/**
 * Locks an identity, so that its sign-ins run one at a time, even if a new person's client starts with many parallel
 * requests.
 */
const lock = async (sql: Sql, { issuer, subject }: Claims) => {
  await sql`select pg_advisory_xact_lock(hashtextextended(${`${issuer} ${subject}`}, 7305522))`
}

const takeNote = async (database: Database, claims: Claims, now: Date): Promise<User | undefined> =>
  await database.transaction(async (transaction) => {
    await lock(transaction, claims)
    const known = await findIdentity(transaction, claims)
    if (known !== undefined && known.user !== undefined && !isNews(claims, known)) return known.user
    await announceCredentialChange(transaction)
    // The address may be free by now, so an identity that waits to be linked may become a user.
    if (known?.user === undefined) return await takeIn(transaction, claims, now)
    await updateIdentity(transaction, claims)
    if (!known.isSource) return known.user
    await claimAddress(transaction, claims, known.user.id)
    return await updateFromIdentity(transaction, known.user, claims)
  })

/**
 * Finds or makes the user of an identity. Throws 403 if the address belongs to an account that this person is not
 * linked to.
 */
export const signIn = async (database: Database, claims: Claims, now: Date): Promise<User> => {
  const known = await findIdentity(database.sql, claims)
  if (known?.user !== undefined && !isNews(claims, known)) return known.user
  const user = await takeNote(database, claims, now)
  if (user !== undefined) return user
  throw new Problem(
    'forbidden',
    'The e-mail address of this token belongs to another account. Sign in to that account and link this one.',
  )
}
