// Announces changes of permissions to every process.
import type { Sql } from '../storage/database.ts'

export const credentialChannel = 'alcove_credentials'

/** Tells every process, when the transaction commits, to drop what it knows about credentials. */
export const announceCredentialChange = async (sql: Sql): Promise<void> => {
  await sql`select pg_notify(${credentialChannel}, '')`
}
