import type { Piece, Sql } from './database.ts'

/**
 * A condition that is always true. A statement with this condition commits without waiting for the disk (PostgreSQL,
 * `synchronous_commit`). Use it only for facts that their sender soon sends again: a power cut may lose the last second.
 */
export const isUnsynced = (sql: Sql): Piece => sql`(select set_config('synchronous_commit', 'off', true)) = 'off'`
