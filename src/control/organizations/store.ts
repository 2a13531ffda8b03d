// The SQL of organizations.

import { type Organization, type OrganizationRow, readOrganization } from '#src/control/people/organization.ts'
import { insertOwner } from '../members/service.ts'
import type { Sql, Transaction } from '../storage/database.ts'

/**
 * Locks an organization against changes until this transaction ends. Other transactions can still add rows that refer to the
 * organization.
 */
export const lockOrganization = async (transaction: Transaction, id: string): Promise<Organization | undefined> => {
  const [row] = await transaction<OrganizationRow[]>`select * from organizations where id = ${id} for no key update`
  return row && readOrganization(row)
}

export const writeOrganization = async (
  transaction: Transaction,
  id: string,
  { experimental_config: config, ...columns }: Partial<OrganizationRow>,
  now: Date,
): Promise<void> => {
  const given =
    config === undefined
      ? {}
      : { experimental_config: config && transaction.json(config as Parameters<Sql['json']>[0]) }
  const written = { ...columns, ...given, updated_at: now }
  await transaction`update organizations set ${transaction(written as typeof columns)} where id = ${id}`
}

export const findOtelConfig = async (sql: Sql, id: string): Promise<string | null | undefined> => {
  const [row] = await sql<{ otel_config: string | null }[]>`select otel_config from organizations where id = ${id}`
  return row?.otel_config
}

type NewOrganization = { name: string; createdBy: string; defaultRegionId: string }

/** Inserts an organization with its creator as owner. */
export const insertOrganization = async (
  transaction: Transaction,
  { name, createdBy, defaultRegionId }: NewOrganization,
  now: Date,
): Promise<Organization> => {
  const [row] = await transaction<OrganizationRow[]>`
    insert into organizations (name, created_by, default_region_id, created_at, updated_at)
    values (${name}, ${createdBy}, ${defaultRegionId}, ${now}, ${now}) returning *`
  const organization = readOrganization(row!)
  await insertOwner(transaction, organization.id, createdBy, now)
  return organization
}

/** Counts the organizations that a user created, without the personal organization. Locks the user, so concurrent creates wait. */
export const countCreatedBy = async (transaction: Transaction, userId: string): Promise<number> => {
  await transaction`select 1 from users where id = ${userId} for no key update`
  const [counted] = await transaction<{ count: number }[]>`
    select count(*) from organizations where created_by = ${userId} and not personal`
  return counted?.count ?? 0
}

/**
 * Locks an organization until the transaction ends: other transactions can neither change nor delete it, nor add rows that
 * refer to it.
 */
export const holdOrganization = async (transaction: Transaction, id: string): Promise<Organization | undefined> => {
  const [row] = await transaction<OrganizationRow[]>`select * from organizations where id = ${id} for update`
  return row && readOrganization(row)
}

export const isOwner = async (sql: Sql, id: string, userId: string): Promise<boolean> => {
  const [row] = await sql`
    select 1 from members where organization_id = ${id} and user_id = ${userId} and role = 'owner'`
  return row !== undefined
}

/**
 * Deletes an organization, and with it the rows that refer to it by a foreign key. Keeps the organization's id, because runners
 * may still have its sandboxes.
 */
export const removeOrganization = async (
  transaction: Transaction,
  id: string,
  { deletedBy, deletedAt }: { deletedBy: string; deletedAt: Date },
): Promise<void> => {
  await transaction`
    insert into deleted_organizations (id, deleted_by, deleted_at) values (${id}, ${deletedBy}, ${deletedAt})`
  await transaction`delete from organizations where id = ${id}`
}

/** Writes the quotas that are columns of the table `organizations`. Returns false if the organization does not exist. */
export const writeOrganizationQuota = async (
  sql: Sql,
  organizationId: string,
  given: Record<string, number | null>,
  now: Date,
): Promise<boolean> => {
  const rows = await sql`
    update organizations set ${sql({ ...given, updated_at: now })} where id = ${organizationId} returning id`
  return rows.length > 0
}
