import type { Piece, Sql } from './database.ts'

/**
 * SQL condition that is always true, and makes the commit not wait for the disk. A power cut may lose the commits of the last
 * second. So use this condition only for facts that their sender sends again.
 */
export const isUnsynced = (sql: Sql): Piece => sql`(select set_config('synchronous_commit', 'off', true)) = 'off'`
