// Turns an issuer's claims about a person into one of our users: makes a new user, or updates a known one.
//
// If another user already has the person's e-mail address, the person cannot sign in until that user links the account
// (linked-accounts.ts). Exception: the person gets the address, and the other user loses it, if both conditions are true:
// - The issuer has verified that the address belongs to the person.
// - The other user's only proof of the address is that single sign-on has verified it.

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

/**
 * Returns whether a token's claims are newer than the stored claims and differ from them. Claims of an older token change nothing.
 */
const isNews = ({ saidAt, email, emailVerified, name }: Claims, known: Identity): boolean =>
  saidAt !== undefined &&
  saidAt > known.saidAt &&
  (name !== known.name || (email !== undefined && (email !== known.email || emailVerified !== known.emailVerified)))

/**
 * Takes the person's verified address away from another user. The other user keeps the address unless single sign-on verified it
 * for that user.
 */
const claimAddress = async (sql: Transaction, { email, emailVerified }: Claims, ownerId: string | undefined) => {
  if (email !== undefined && emailVerified) await freeAddress(sql, email, ownerId)
}

const takeIn = async (transaction: Transaction, claims: Claims, now: Date): Promise<User | undefined> => {
  const { email, emailVerified, name } = claims
  if (email === undefined) {
    throw new Problem('unauthorized', 'This token has no e-mail address, so no account can be created for its holder.')
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

/** Locks a person's account at an issuer: the client of a new person may begin with several requests at once. */
const lock = async (sql: Sql, { issuer, subject }: Claims) => {
  await sql`select pg_advisory_xact_lock(hashtextextended(${`${issuer} ${subject}`}, 7305522))`
}

const takeNote = async (database: Database, claims: Claims, now: Date): Promise<User | undefined> =>
  await database.transaction(async (transaction) => {
    await lock(transaction, claims)
    const known = await findIdentity(transaction, claims)
    if (known !== undefined && known.user !== undefined && !isNews(claims, known)) return known.user
    await announceCredentialChange(transaction)
    // A known identity without a user: its e-mail address belonged to another user, but may be free now.
    if (known?.user === undefined) return await takeIn(transaction, claims, now)
    await updateIdentity(transaction, claims)
    if (!known.isSource) return known.user
    await claimAddress(transaction, claims, known.user.id)
    return await updateFromIdentity(transaction, known.user, claims)
  })

/**
 * Finds or makes the user for an issuer's claims. Throws 403 if the e-mail address belongs to a user who has not linked
 * this account.
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
