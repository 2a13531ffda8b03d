// Deletes records of our own issuer. This file does not load oidc-provider, because most servers never need that
// package.
import type { Sql } from '../storage/database.ts'

export const sweepRecords = async (sql: Sql): Promise<void> => {
  await sql`delete from issuer_records where expires_at <= now()`
}

/** Deletes all records that keep this user signed in at our own issuer. */
export const endSessions = async (sql: Sql, userId: string): Promise<void> => {
  await sql`delete from issuer_records where account_id = ${userId}`
}
