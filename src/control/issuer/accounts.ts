// Local accounts, which an operator makes. If control generates a password, the password is shown only once.
import { Problem } from '#src/problems.ts'
import { announceCredentialChange, type Callers } from '../auth/callers.ts'
import { readEmail } from '../auth/claims.ts'
import { readDisplayText } from '../display-text.ts'
import type { Parts } from '../parts.ts'
import { admitUser } from '../users/admit.ts'
import { findUserByEmail, freeAddress } from '../users/service.ts'
import { endSessions } from './delete-records.ts'
import { checkPassword, newPassword, setPassword } from './passwords.ts'
import { makeSignInLink } from './sign-in-links.ts'

export type AccountParts = Pick<Parts, 'database' | 'clock' | 'settings'> & { callers: Callers }

const checkSignsInHere = ({ settings }: AccountParts) => {
  if (settings.identity.issuers.length === 0) return
  throw new Problem(
    'conflict',
    'This server uses another issuer, which signs in people and creates their accounts: see ALCOVE_OIDC_ISSUER.',
  )
}

/** Makes a local account. Its e-mail address is stored as verified, because the operator is responsible for this address. */
export const addAccount = async (parts: AccountParts, body: { email: string; name?: string }) => {
  checkSignsInHere(parts)
  const email = readEmail(body.email)
  if (email === undefined) throw new Problem('bad_request', 'email is not an e-mail address')
  const name = body.name === undefined ? email : readDisplayText('name', body.name)
  const user = await parts.database.transaction(async (transaction) => {
    const wanted = { email, name, emailVerified: true, emailVerifiedBy: 'admin' } as const
    await freeAddress(transaction, email, undefined)
    const made = await admitUser(transaction, wanted)
    if (made === undefined) throw new Problem('already_exists', 'An account with this e-mail address already exists.')
    await announceCredentialChange(transaction)
    return made
  })
  parts.callers.forget()
  return { id: user.id, email: user.email, name: user.name }
}

/** Finds the user with an e-mail address. Throws 409 if only an organization's identity provider has verified the address. */
const findOwner = async ({ database }: AccountParts, email: string) => {
  const user = await findUserByEmail(database.sql, email)
  if (user === undefined) throw new Problem('not_found', 'No account has this e-mail address.')
  // The identity provider may let somebody else sign in with this address. That person would share the account with the owner of
  // the address.
  if (user.emailVerified && !user.ownsAddress) {
    throw new Problem(
      'conflict',
      'Only the identity provider of an organization has verified this address. Create an account for the owner of the address first.',
    )
  }
  return user
}

/**
 * Sets the given password or a generated password for a user, and ends all sessions of the user. Access tokens stay valid until
 * they expire.
 */
export const givePassword = async (parts: AccountParts, body: { email: string; password?: string }) => {
  checkSignsInHere(parts)
  const { password = newPassword() } = body
  checkPassword(password)
  const user = await findOwner(parts, body.email)
  await parts.database.transaction(async (transaction) => {
    await setPassword(transaction, user.id, password, parts.clock.now())
    await endSessions(transaction, user.id)
    await announceCredentialChange(transaction)
  })
  parts.callers.forget()
  return { email: user.email, password }
}

/** Makes a one-time URL with which a user can sign in. An earlier URL of the user stops working. */
export const giveLink = async (parts: AccountParts, body: { email: string }) => {
  checkSignsInHere(parts)
  const user = await findOwner(parts, body.email)
  return { email: user.email, ...(await makeSignInLink(parts, user.id)) }
}
