// The SQL of single sign-on: attempts to sign in, and links between users and their accounts at an identity provider.
import type { IdentityProvider } from '../identity-providers/identity-provider.ts'
import type { Sql } from '../storage/database.ts'

export type Attempt = {
  identityProviderId: string
  organizationId: string
  /** The issuer to which the browser was redirected when this attempt began. */
  issuerUrl: string
  nonce: string
  codeVerifier: string
}

type AttemptKey = { stateHash: string; browserHash: string }

const mostAttempts = 20_000

/**
 * Inserts an attempt to sign in, and deletes expired attempts. Above `mostAttempts`, deletes the oldest attempts of the client
 * addresses (IPv6: /48 networks) that have the most attempts. Deletes five percent more than necessary, because counting by address
 * is slow and should not be repeated soon.
 */
export const insertAttempt = async (
  sql: Sql,
  { stateHash, browserHash }: AttemptKey,
  attempt: Omit<Attempt, 'organizationId'>,
  { now, expiresAt, source }: { now: Date; expiresAt: Date; source: string },
): Promise<void> => {
  await sql`delete from sso_attempts where expires_at <= ${now}`
  await sql`
    insert into sso_attempts (state_hash, browser_hash, identity_provider_id, issuer_url, nonce, code_verifier, expires_at,
                              source)
    values (${stateHash}, ${browserHash}, ${attempt.identityProviderId}, ${attempt.issuerUrl}, ${attempt.nonce},
            ${attempt.codeVerifier}, ${expiresAt}, ${source})`
  const [{ begun }] = await sql<[{ begun: number }]>`select count(*)::integer as begun from sso_attempts`
  if (begun <= mostAttempts) return
  await sql`
    with chosen as (
      select state_hash from (
        select state_hash, expires_at, row_number() over (partition by source order by expires_at desc) as place
        from sso_attempts) counted
      order by place desc, expires_at
      limit ${begun - mostAttempts + mostAttempts / 20})
    delete from sso_attempts where state_hash in (
      select state_hash from sso_attempts where state_hash in (select state_hash from chosen) for update skip locked)`
}

/**
 * Deletes and returns an attempt to sign in, so that the attempt works only once. `undefined` if the attempt has expired, or if
 * another browser began it.
 */
export const takeAttempt = async (
  sql: Sql,
  { stateHash, browserHash }: AttemptKey,
  now: Date,
): Promise<Attempt | undefined> => {
  const [row] = await sql<Attempt[]>`
    delete from sso_attempts a using identity_providers p
    where a.state_hash = ${stateHash} and a.browser_hash = ${browserHash} and a.expires_at > ${now}
      and p.id = a.identity_provider_id
    returning a.identity_provider_id as "identityProviderId", p.organization_id as "organizationId",
      a.issuer_url as "issuerUrl", a.nonce, a.code_verifier as "codeVerifier"`
  return row
}

/** An account at an identity provider. */
type Account = { provider: Pick<IdentityProvider, 'id' | 'issuerUrl'>; subject: string }

/**
 * Discovery treats an issuer with and without a slash at its end as equal. Older versions stored what the user had entered, so
 * queries search for both spellings.
 */
const issuerOf = ({ issuerUrl }: Account['provider']): string => issuerUrl.replace(/\/+$/, '')
const spellingsOf = (provider: Account['provider']): string[] => [issuerOf(provider), `${issuerOf(provider)}/`]

/** Returns the id of the user to whom an account at an identity provider is linked. Ignores pending and rejected links. */
export const findLinkedUserId = async (sql: Sql, { provider, subject }: Account): Promise<string | undefined> => {
  const [row] = await sql<{ user_id: string }[]>`
    select user_id from sso_links
    where identity_provider_id = ${provider.id} and issuer_url = any(${spellingsOf(provider)}) and subject = ${subject}
      and state = 'linked'
    order by issuer_url = ${provider.issuerUrl} desc limit 1`
  return row?.user_id
}

/**
 * Finds the user with this e-mail address who can no longer sign in. Returns undefined unless all conditions are true:
 * - Only single sign-on has verified that the user has the address.
 * - The user is no operator, and has no password and no account at an issuer.
 * - The user's SSO links belong to an earlier issuer, or were deleted with their provider.
 * - The user is a plain member of this organization, and otherwise only of a personal organization.
 */
export const findStrandedUserId = async (
  sql: Sql,
  provider: Pick<IdentityProvider, 'id' | 'issuerUrl' | 'organizationId'>,
  email: string,
): Promise<string | undefined> => {
  const [row] = await sql<{ id: string }[]>`
    select u.id from users u
    join members m on m.user_id = u.id and m.organization_id = ${provider.organizationId} and m.role = 'member'
    where lower(u.email) = lower(${email}) and u.email_verified and u.email_verified_by = 'sso'
      and u.system_role <> 'admin'
      and not exists (select 1 from user_identities i where i.user_id = u.id)
      and not exists (select 1 from user_passwords p where p.user_id = u.id)
      and not exists (select 1 from sso_links l where l.user_id = u.id and l.state = 'linked'
        and (l.identity_provider_id <> ${provider.id} or l.issuer_url = any(${spellingsOf(provider)})))
      and not exists (select 1 from members e join organizations o on o.id = e.organization_id
        where e.user_id = u.id and o.id <> m.organization_id and not o.personal)`
  return row?.id
}

export const deleteLinksOf = async (sql: Sql, userId: string): Promise<void> => {
  await sql`delete from sso_links where user_id = ${userId}`
}

type NewLink = { userId: string; email: string; state: 'pending' | 'linked'; createdAt: Date; expiresAt: Date }

/**
 * Stores a link between an account and a user. The new link replaces the account's earlier link, except in two cases:
 * - The earlier link has the state `linked`.
 * - Both links are pending and name the same user, and the earlier link has not expired.
 */
export const putLink = async (sql: Sql, { provider, subject }: Account, link: NewLink): Promise<void> => {
  const { userId, email, state, createdAt, expiresAt } = link
  // Delete expired pending links. Delete the user's pending links to the provider's other accounts, so that one provider cannot
  // fill the user's list.
  await sql`
    delete from sso_links where id in (
      select id from sso_links
      where state = 'pending' and (expires_at <= ${createdAt}
        or (identity_provider_id = ${provider.id} and user_id = ${userId} and subject <> ${subject}))
      for update skip locked)`
  await sql`
    insert into sso_links as l
      (identity_provider_id, issuer_url, subject, user_id, provider_email, state, created_at, expires_at)
    values (${provider.id}, ${issuerOf(provider)}, ${subject}, ${userId}, ${email}, ${state}, ${createdAt}, ${expiresAt})
    on conflict (identity_provider_id, issuer_url, subject) do update set
      user_id = excluded.user_id, provider_email = excluded.provider_email, state = excluded.state,
      created_at = excluded.created_at, expires_at = excluded.expires_at,
      id = excluded.id
    where l.state <> 'linked'
      and not (l.state = 'pending' and excluded.state = 'pending' and l.user_id = excluded.user_id
               and l.expires_at > excluded.created_at)`
}

type PendingLink = {
  id: string
  idpName: string
  organizationId: string
  providerEmail: string | null
  createdAt: Date
  expiresAt: Date
}

const mostPending = 100

export const listPendingLinks = async (sql: Sql, userId: string, now: Date): Promise<PendingLink[]> =>
  await sql<PendingLink[]>`
    select l.id, p.name as "idpName", p.organization_id as "organizationId", l.provider_email as "providerEmail",
           l.created_at as "createdAt", l.expires_at as "expiresAt"
    from sso_links l join identity_providers p on p.id = l.identity_provider_id
    where l.user_id = ${userId} and l.state = 'pending' and l.expires_at > ${now}
    order by l.created_at, l.id limit ${mostPending}`

type LinkOf = { id: string; userId: string }

/**
 * Confirms a pending link. Returns false if there is no such link, if the link's address is not the user's own verified address
 * (`ownsAddress`), or if the user is an operator.
 */
export const acceptLink = async (sql: Sql, { id, userId }: LinkOf, now: Date): Promise<boolean> => {
  const { count } = await sql`
    update sso_links l set state = 'linked' from users u
    where l.id = ${id} and l.user_id = ${userId} and l.state = 'pending' and l.expires_at > ${now}
      and u.id = l.user_id and lower(u.email) = lower(l.provider_email)
      and u.email_verified and u.email_verified_by is distinct from 'sso' and u.system_role <> 'admin'`
  return count === 1
}

/** Rejects a pending link. Returns false if there is no such link. */
export const refuseLink = async (sql: Sql, { id, userId }: LinkOf, now: Date): Promise<boolean> => {
  const { count } = await sql`
    update sso_links set state = 'rejected'
    where id = ${id} and user_id = ${userId} and state = 'pending' and expires_at > ${now}`
  return count === 1
}
