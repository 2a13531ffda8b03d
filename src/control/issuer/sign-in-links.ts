// Links with which one user can sign in once, without a password. `alcove up` makes one at the first start; operators can make
// more.
import { randomBytes } from 'node:crypto'
import { hashKey } from '../auth/secret.ts'
import type { Parts } from '../parts.ts'
import { dashboardUrl } from '../settings/dashboard-url.ts'
import type { Sql } from '../storage/database.ts'

/** The parameter of an authorization request (OpenID Connect) that carries the token of a sign-in link. */
export const linkParameter = 'link'

const hours = 24

/** Makes a one-time link for a user. An earlier link of the user stops working. */
export const makeSignInLink = async (
  { database, clock, settings }: Pick<Parts, 'database' | 'clock' | 'settings'>,
  userId: string,
): Promise<{ url: string; expiresAt: string }> => {
  const token = randomBytes(32).toString('base64url')
  const expiresAt = new Date(clock.now().getTime() + hours * 60 * 60 * 1000)
  await database.sql`
    insert into sign_in_links (user_id, hash, expires_at) values (${userId}, ${hashKey(token)}, ${expiresAt})
    on conflict (user_id) do update set hash = excluded.hash, expires_at = excluded.expires_at`
  // Browsers do not send the part of a URL after `#`. So the token reaches no server, log or referrer before the dashboard
  // reads it.
  return { url: `${dashboardUrl(settings)}#link=${token}`, expiresAt: expiresAt.toISOString() }
}

/**
 * Deletes a link and returns its user. Undefined for an unknown, expired or used link.
 * If two calls use a link at the same time, only one gets the user.
 */
export const consumeSignInLink = async (
  sql: Sql,
  token: string,
  now: Date,
): Promise<{ id: string; email: string } | undefined> => {
  const [user] = await sql<{ id: string; email: string }[]>`
    delete from sign_in_links using users
    where hash = ${hashKey(token)} and expires_at > ${now} and users.id = sign_in_links.user_id
    returning users.id, users.email`
  return user
}
