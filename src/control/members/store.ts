// The SQL of members.
import type { Sql } from '../storage/database.ts'
import { type Member, type MemberRow, readMember } from './member.ts'

const select = (sql: Sql) => sql`
  select m.user_id, m.organization_id, u.name, u.email, m.role, m.created_at, m.updated_at, to_jsonb(array(
    select to_jsonb(r) from member_roles mr join roles r on r.id = mr.role_id
    where mr.organization_id = m.organization_id and mr.user_id = m.user_id
    order by r.organization_id nulls first, r.created_at, r.id)) as assigned_roles
  from members m join users u on u.id = m.user_id`

/** Lists members, the earliest first. An organization has a maximum number of members, so no pages are needed. */
export const listMembers = async (sql: Sql, organizationId: string): Promise<Member[]> => {
  const rows = await sql<MemberRow[]>`
    ${select(sql)} where m.organization_id = ${organizationId} order by m.created_at, m.user_id`
  return rows.map(readMember)
}

export const findMember = async (sql: Sql, organizationId: string, userId: string): Promise<Member | undefined> => {
  const [row] = await sql<MemberRow[]>`
    ${select(sql)} where m.organization_id = ${organizationId} and m.user_id = ${userId}`
  return row && readMember(row)
}

export const countMembers = async (sql: Sql, organizationId: string): Promise<number> => {
  const [row] = await sql<[{ count: number }]>`select count(*) from members where organization_id = ${organizationId}`
  return row.count
}

export const hasOtherOwner = async (sql: Sql, organizationId: string, userId: string): Promise<boolean> => {
  const [row] = await sql`
    select 1 from members where organization_id = ${organizationId} and role = 'owner' and user_id <> ${userId} limit 1`
  return row !== undefined
}

export type Access = { role: 'owner' | 'member'; roleIds: readonly string[] }

/** Inserts a member. Returns false if the user is a member already. */
export const insertMember = async (
  sql: Sql,
  { organizationId, userId }: Pick<Member, 'organizationId' | 'userId'>,
  { role, roleIds }: Access,
  now: Date,
): Promise<boolean> => {
  const { count } = await sql`
    insert into members (organization_id, user_id, role, created_at, updated_at)
    values (${organizationId}, ${userId}, ${role}, ${now}, ${now}) on conflict do nothing`
  if (count === 1) await assignRoles(sql, { organizationId, userId }, roleIds)
  return count === 1
}

/** Inserts the first owner of an organization that is being made. */
export const insertOwner = async (sql: Sql, organizationId: string, userId: string, now?: Date): Promise<void> => {
  const at = now ?? sql`now()`
  await sql`
    insert into members (organization_id, user_id, role, created_at, updated_at)
    values (${organizationId}, ${userId}, 'owner', ${at}, ${at})`
}

export const writeAccess = async (
  sql: Sql,
  { organizationId, userId }: Pick<Member, 'organizationId' | 'userId'>,
  { role, roleIds }: Access,
  now: Date,
): Promise<void> => {
  await sql`
    update members set role = ${role}, updated_at = ${now}
    where organization_id = ${organizationId} and user_id = ${userId}`
  await sql`delete from member_roles where organization_id = ${organizationId} and user_id = ${userId}`
  await assignRoles(sql, { organizationId, userId }, roleIds)
}

const assignRoles = async (
  sql: Sql,
  { organizationId, userId }: Pick<Member, 'organizationId' | 'userId'>,
  roleIds: readonly string[],
): Promise<void> => {
  await sql`
    insert into member_roles (organization_id, user_id, role_id)
    select ${organizationId}, ${userId}, unnest(${[...roleIds]}::text[])`
}

/** Deletes a member with their roles and keys in this organization. */
export const deleteMember = async (sql: Sql, organizationId: string, userId: string): Promise<void> => {
  await sql`delete from members where organization_id = ${organizationId} and user_id = ${userId}`
}
