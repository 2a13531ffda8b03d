// How every process hears that something changed which decides who may do what.
import type { Sql } from '../storage/database.ts'

export const credentialChannel = 'alcove_credentials'

/** Tells every process, when the transaction commits, that what it knows of credentials is old. */
export const announceCredentialChange = async (sql: Sql): Promise<void> => {
  await sql`select pg_notify(${credentialChannel}, '')`
}
