// Notifies every control process when data about callers has changed: API keys, members, roles, users or organizations.
import type { Sql } from '../storage/database.ts'

export const credentialChannel = 'alcove_credentials'

/** Makes every process clear its cache of credentials when the transaction commits. */
export const announceCredentialChange = async (sql: Sql): Promise<void> => {
  await sql`select pg_notify(${credentialChannel}, '')`
}
