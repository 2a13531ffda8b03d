// Deletes rows that Alcove's own issuer has stored, such as sessions. Does not load the package oidc-provider, because
// most servers never need it.
import type { Sql } from '../storage/database.ts'

export const sweepRecords = async (sql: Sql): Promise<void> => {
  await sql`delete from issuer_records where expires_at <= now()`
}

/** Deletes all rows that keep this user signed in at Alcove's own issuer. */
export const endSessions = async (sql: Sql, userId: string): Promise<void> => {
  await sql`delete from issuer_records where account_id = ${userId}`
}
