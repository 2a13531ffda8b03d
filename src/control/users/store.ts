// The SQL of users, and of their identities. An identity is a person's account at an issuer.

import { readUser, type User, type UserRow } from '#src/control/people/user.ts'
import type { Claims } from '../auth/claims.ts'
import type { Sql } from '../storage/database.ts'

export type Identity = {
  issuer: string
  subject: string
  email: string
  emailVerified: boolean
  name: string
  saidAt: Date
  /** True if the user's name and e-mail address come from this account. */
  isSource: boolean
  /** The user who signs in with this account. Undefined while the account is not linked to a user. */
  user: User | undefined
}

type IdentityRow = Omit<Identity, 'user'> & { user_row: UserRow | null }

export const findIdentity = async (
  sql: Sql,
  { issuer, subject }: Pick<Claims, 'issuer' | 'subject'>,
): Promise<Identity | undefined> => {
  const [row] = await sql<IdentityRow[]>`
    select i.issuer, i.subject, i.email, i.email_verified as "emailVerified", i.name, i.said_at as "saidAt",
           i.is_source as "isSource", to_jsonb(u) as user_row
    from user_identities i left join users u on u.id = i.user_id
    where i.issuer = ${issuer} and i.subject = ${subject}`
  if (row === undefined) return undefined
  const { user_row, ...identity } = row
  return {
    ...identity,
    user: user_row === null ? undefined : readUser({ ...user_row, created_at: new Date(user_row.created_at) }),
  }
}

type NewIdentity = Pick<Identity, 'issuer' | 'subject' | 'email' | 'emailVerified' | 'name' | 'saidAt' | 'isSource'> & {
  userId: string | undefined
}

/** Inserts an identity (a person's account at an issuer). If the identity exists and has no user, updates it. */
export const insertIdentity = async (sql: Sql, identity: NewIdentity): Promise<void> => {
  const { issuer, subject, email, emailVerified, name, saidAt, isSource, userId } = identity
  await sql`
    insert into user_identities (issuer, subject, user_id, email, email_verified, name, said_at, is_source)
    values (${issuer}, ${subject}, ${userId ?? null}, ${email}, ${emailVerified}, ${name}, ${saidAt}, ${isSource})
    on conflict (issuer, subject) do update set user_id = excluded.user_id, email = excluded.email,
      email_verified = excluded.email_verified, name = excluded.name, said_at = excluded.said_at`
}

export const updateIdentity = async (sql: Sql, claims: Claims): Promise<void> => {
  const { issuer, subject, email, emailVerified, name, saidAt } = claims
  const change = { name, ...(email === undefined ? {} : { email, email_verified: emailVerified }), said_at: saidAt! }
  await sql`update user_identities set ${sql(change)} where issuer = ${issuer} and subject = ${subject}`
}

export type NewUser = Pick<User, 'email' | 'emailVerified' | 'name'> & { emailVerifiedBy: 'admin' | 'issuer' | 'sso' }

/** Inserts a user. Returns undefined if another user has this e-mail address. */
export const insertUser = async (sql: Sql, user: NewUser): Promise<User | undefined> => {
  const { name, email, emailVerified, emailVerifiedBy } = user
  const [row] = await sql<UserRow[]>`
    insert into users (name, email, email_verified, email_verified_by)
    values (${name}, ${email}, ${emailVerified}, ${emailVerified ? emailVerifiedBy : null})
    on conflict (lower(email)) do nothing returning *`
  return row && readUser(row)
}

/**
 * Takes an e-mail address from its user if only single sign-on has verified the address. While that user had the address, the real
 * owner could not become a user. The old user can still sign in, and gets an address that nobody can have (RFC 2606 §2).
 */
export const freeAddress = async (sql: Sql, email: string, ownerId: string | undefined): Promise<void> => {
  await sql`
    update users set email = gen_random_uuid() || '@sso.invalid', email_verified = false, email_verified_by = null,
      updated_at = now()
    where lower(email) = lower(${email}) and email_verified_by = 'sso' and id is distinct from ${ownerId ?? null}`
}

/**
 * Updates the name and e-mail address of `user` from `claims`. The claims come from the user's identity with the column
 * `is_source`. If another user has the new address, `user` keeps the old address. If an operator or single sign-on has verified the
 * address, the address stays verified until it changes.
 */
export const updateFromIdentity = async (sql: Sql, user: User, claims: Claims): Promise<User> => {
  const { name, email = user.email, emailVerified } = claims
  const [row] = await sql<UserRow[]>`
    with said as (
      select ${email}::text as email, ${emailVerified}::boolean as verified,
             exists (select 1 from users where lower(email) = lower(${email}) and id <> ${user.id}) as taken
    )
    update users u set
      name = ${name},
      email = case when s.taken then u.email else s.email end,
      email_verified = case
        when s.taken then u.email_verified
        when lower(s.email) = lower(u.email) and u.email_verified_by is distinct from 'issuer'
          then u.email_verified or s.verified
        else s.verified end,
      email_verified_by = case
        when s.taken then u.email_verified_by
        when lower(s.email) = lower(u.email) and u.email_verified and u.email_verified_by is distinct from 'issuer'
          then u.email_verified_by
        when s.verified then 'issuer' end,
      updated_at = now()
    from said s where u.id = ${user.id} returning u.*`
  return row === undefined ? user : readUser(row)
}

/** Lists the issuers at which a user can sign in. */
export const listLinked = async (sql: Sql, userId: string): Promise<string[]> => {
  const rows = await sql<{ issuer: string }[]>`select distinct issuer from user_identities where user_id = ${userId}`
  return rows.map(({ issuer }) => issuer)
}

type Key = Pick<Claims, 'issuer' | 'subject'>

/**
 * Links an identity without a user to a user with the same e-mail address. The issuer must have verified the address. Something
 * other than single sign-on must have verified the user's address. Otherwise an attacker could first become a user with
 * somebody else's address. The address's owner would later sign in as the attacker's user.
 */
export const linkIdentity = async (sql: Sql, { issuer, subject }: Key, userId: string): Promise<boolean> => {
  const linked = await sql`
    update user_identities i set user_id = u.id, is_source = false from users u
    where i.issuer = ${issuer} and i.subject = ${subject} and i.user_id is null and u.id = ${userId}
      and lower(i.email) = lower(u.email) and i.email_verified and u.email_verified
      and u.email_verified_by is distinct from 'sso'`
  return linked.count > 0
}

/**
 * Deletes an identity of a user. If the identity was the source of the name and e-mail address, the user's oldest other identity
 * becomes the source.
 */
export const unlinkIdentity = async (sql: Sql, { issuer, subject }: Key, userId: string): Promise<boolean> => {
  const [gone] = await sql<{ is_source: boolean }[]>`
    delete from user_identities where issuer = ${issuer} and subject = ${subject} and user_id = ${userId}
    returning is_source`
  if (gone?.is_source) {
    await sql`
      update user_identities set is_source = true where (issuer, subject) in (
        select issuer, subject from user_identities where user_id = ${userId} order by created_at, issuer, subject limit 1)`
  }
  return gone !== undefined
}

/** Counts the accounts at issuers with which the user can sign in. */
export const countSignIns = async (sql: Sql, userId: string): Promise<number> => {
  const [row] = await sql<{ count: number }[]>`
    select count(*)::int as count from user_identities where user_id = ${userId}`
  return row?.count ?? 0
}

export const findUserById = async (sql: Sql, id: string): Promise<User | undefined> => {
  const [row] = await sql<UserRow[]>`select * from users where id = ${id}`
  return row && readUser(row)
}

export const findUserByEmail = async (sql: Sql, email: string): Promise<User | undefined> => {
  const [row] = await sql<UserRow[]>`select * from users where lower(email) = lower(${email})`
  return row && readUser(row)
}

/** Inserts the first administrator of a server that has no users yet. */
export const insertFirstAdministrator = async (sql: Sql): Promise<string> => {
  const [user] = await sql<[{ id: string }]>`
    insert into users (name, email, email_verified, email_verified_by, system_role)
    values ('Administrator', 'admin@localhost', true, 'admin', 'admin') returning id`
  return user.id
}
