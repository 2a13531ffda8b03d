// Deletes records of our own issuer without loading oidc-provider, which most servers need only now and then.
import type { Sql } from '../storage/database.ts'

export const sweepRecords = async (sql: Sql): Promise<void> => {
  await sql`delete from issuer_records where expires_at <= now()`
}

/** Deletes everything that keeps this user signed in at our own issuer. */
export const endSessions = async (sql: Sql, userId: string): Promise<void> => {
  await sql`delete from issuer_records where account_id = ${userId}`
}
