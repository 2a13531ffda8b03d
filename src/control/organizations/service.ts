// What other rooms may ask about organizations.
import type { Sql } from '../storage/database.ts'

export const hasPreviewWarning = async (sql: Sql, organizationId: string): Promise<boolean> => {
  const [row] = await sql<{ enabled: boolean }[]>`
    select preview_warning_enabled as enabled from organizations where id = ${organizationId}`
  return row?.enabled ?? false
}
