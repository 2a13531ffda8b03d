// Notifies every control process when keys, members, roles or users have changed.
import type { Sql } from '../storage/database.ts'

export const credentialChannel = 'alcove_credentials'

/** Makes every process clear its cache of credentials when the transaction commits. */
export const announceCredentialChange = async (sql: Sql): Promise<void> => {
  await sql`select pg_notify(${credentialChannel}, '')`
}
