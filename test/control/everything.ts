// Reads a whole database, one text per table. Equal texts before and after a call show that the call changed nothing.
import type { Sql } from '#src/control/storage/database.ts'

/** Database columns that control updates even if no call changes anything. The function `everything` leaves these columns out. */
const signsOfLife = ['last_used_at', 'last_heartbeat_at']

export const everything = async (sql: Sql, except: readonly string[] = []): Promise<Record<string, string>> => {
  const tables = await sql<{ name: string }[]>`
    select table_name as name from information_schema.tables
    where table_schema = 'public' and table_type = 'BASE TABLE' order by table_name`
  const found: Record<string, string> = {}
  for (const { name } of tables.filter((table) => !except.includes(table.name))) {
    const rows = await sql<{ row: string }[]>`
      select (to_jsonb(t) - ${signsOfLife}::text[])::text as row from ${sql(name)} t order by 1`
    found[name] = rows.map(({ row }) => row).join('\n')
  }
  return found
}
