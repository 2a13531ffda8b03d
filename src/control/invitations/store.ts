// The SQL of invitations. A query that reads one invitation by its id also compares the organization or the e-mail address.
// So somebody who guesses an id cannot read the invitation.
import type { Sql } from '../storage/database.ts'
import { type Invitation, type InvitationRow, type InvitationStatus, readInvitation } from './invitation.ts'

const select = (sql: Sql) => sql`
  select i.*, o.name as organization_name, to_jsonb(array(
    select to_jsonb(r) from invitation_roles ir join roles r on r.id = ir.role_id where ir.invitation_id = i.id
    order by r.organization_id nulls first, r.created_at, r.id)) as assigned_roles
  from invitations i join organizations o on o.id = i.organization_id`

const readAll = (rows: InvitationRow[]): Invitation[] => rows.map(readInvitation)

export const findOfOrganization = async (sql: Sql, organizationId: string, id: string) => {
  const rows = await sql<InvitationRow[]>`${select(sql)} where i.id = ${id} and i.organization_id = ${organizationId}`
  return readAll(rows)[0]
}

export const findForAddress = async (sql: Sql, email: string, id: string): Promise<Invitation | undefined> => {
  const rows = await sql<InvitationRow[]>`${select(sql)} where i.id = ${id} and i.email = ${email}`
  return readAll(rows)[0]
}

/**
 * Lists the invitations of an organization that can be accepted now, newest first. Their number has a limit, so no
 * pages are needed.
 */
export const listOfOrganization = async (sql: Sql, organizationId: string, now: Date): Promise<Invitation[]> => {
  const rows = await sql<InvitationRow[]>`
    ${select(sql)} where i.organization_id = ${organizationId} and i.status = 'pending' and i.expires_at > ${now}
    order by i.created_at desc, i.id`
  return readAll(rows)
}

export const listForAddress = async (sql: Sql, email: string, now: Date): Promise<Invitation[]> => {
  const rows = await sql<InvitationRow[]>`
    ${select(sql)} where i.email = ${email} and i.status = 'pending' and i.expires_at > ${now}
    order by i.created_at desc, i.id limit 1000`
  return readAll(rows)
}

export const countForAddress = async (sql: Sql, email: string, now: Date): Promise<number> => {
  const [row] = await sql<[{ count: number }]>`
    select count(*) from invitations where email = ${email} and status = 'pending' and expires_at > ${now}`
  return row.count
}

export type InvitationCounts = { pending: number; ofLately: number; ofLatelyToAddress: number }

/**
 * Counts invitations of an organization. `pending`: nobody has answered or cancelled them.
 * `ofLately`: made after `since`. `ofLatelyToAddress`: made after `since` for this address.
 */
export const countMade = async (
  sql: Sql,
  organizationId: string,
  email: string,
  since: Date,
): Promise<InvitationCounts> => {
  const [row] = await sql<[{ pending: number; of_lately: number; to_address: number }]>`
    select count(*) filter (where status = 'pending') as pending,
      count(*) filter (where created_at > ${since}) as of_lately,
      count(*) filter (where created_at > ${since} and email = ${email}) as to_address
    from invitations where organization_id = ${organizationId}`
  return { pending: row.pending, ofLately: row.of_lately, ofLatelyToAddress: row.to_address }
}

export const isMemberByAddress = async (sql: Sql, organizationId: string, email: string): Promise<boolean> => {
  const [row] = await sql`
    select 1 from members m join users u on u.id = m.user_id
    where m.organization_id = ${organizationId} and lower(u.email) = ${email}`
  return row !== undefined
}

export const isInvited = async (sql: Sql, organizationId: string, email: string): Promise<boolean> => {
  const [row] = await sql`
    select 1 from invitations where organization_id = ${organizationId} and email = ${email} and status = 'pending'`
  return row !== undefined
}

type NewInvitation = Pick<Invitation, 'email' | 'invitedBy' | 'organizationId' | 'expiresAt' | 'role'>

export const insertInvitation = async (
  sql: Sql,
  { email, invitedBy, organizationId, expiresAt, role }: NewInvitation,
  roleIds: readonly string[],
  now: Date,
): Promise<string> => {
  const [row] = await sql<[{ id: string }]>`
    insert into invitations (organization_id, email, invited_by, role, expires_at, created_at, updated_at)
    values (${organizationId}, ${email}, ${invitedBy}, ${role}, ${expiresAt}, ${now}, ${now}) returning id`
  await assignRoles(sql, row.id, roleIds)
  return row.id
}

export const writeInvitation = async (
  sql: Sql,
  { id, role, expiresAt }: Pick<Invitation, 'id' | 'role' | 'expiresAt'>,
  roleIds: readonly string[],
  now: Date,
): Promise<void> => {
  await sql`update invitations set role = ${role}, expires_at = ${expiresAt}, updated_at = ${now} where id = ${id}`
  await sql`delete from invitation_roles where invitation_id = ${id}`
  await assignRoles(sql, id, roleIds)
}

const assignRoles = async (sql: Sql, id: string, roleIds: readonly string[]): Promise<void> => {
  await sql`
    insert into invitation_roles (invitation_id, role_id) select ${id}, unnest(${[...roleIds]}::text[])`
}

export const settleInvitation = async (
  sql: Sql,
  id: string,
  status: Exclude<InvitationStatus, 'pending'>,
  now: Date,
): Promise<void> => {
  await sql`update invitations set status = ${status}, updated_at = ${now} where id = ${id} and status = 'pending'`
}

/**
 * Cancels the expired invitations of an organization to this e-mail address, so that a new invitation to this address can be
 * made.
 */
export const cancelExpired = async (sql: Sql, organizationId: string, email: string, now: Date): Promise<void> => {
  await sql`
    update invitations set status = 'cancelled', updated_at = ${now}
    where organization_id = ${organizationId} and email = ${email} and status = 'pending' and expires_at <= ${now}`
}

export const deleteSettledBefore = async (sql: Sql, before: Date): Promise<void> => {
  await sql`
    delete from invitations
    where (status = 'pending' and expires_at < ${before}) or (status <> 'pending' and updated_at < ${before})`
}

export const listPendingIds = async (sql: Sql, organizationId: string): Promise<string[]> => {
  const rows = await sql<{ id: string }[]>`
    select id from invitations where organization_id = ${organizationId} and status = 'pending'`
  return rows.map(({ id }) => id)
}
