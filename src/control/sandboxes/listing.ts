// The two listings: one goes on from a cursor, the deprecated one counts pages. Every filter is plain SQL.
import type { Database } from '#src/control/storage/database.ts'
import { Problem } from '#src/problems.ts'
import { readCursor, writeCursor } from './cursor.ts'
import type { SandboxRow } from './sandbox.ts'
import type { ListQuery, listSorts, PageQuery, pageSorts } from './schemas.ts'

type Pool = Database['sql']

type Sort = { column: string; valueIs: 'text' | 'number' | 'time'; valueOf: (row: SandboxRow) => string | number }

const sorts: Record<(typeof listSorts)[number], Sort> = {
  name: { column: 'name', valueIs: 'text', valueOf: (row) => row.name },
  cpu: { column: 'cpu', valueIs: 'number', valueOf: (row) => row.cpu },
  memoryGib: { column: 'memory_gib', valueIs: 'number', valueOf: (row) => row.memory_gib },
  diskGib: { column: 'disk_gib', valueIs: 'number', valueOf: (row) => row.disk_gib },
  lastActivityAt: {
    column: 'last_activity_at',
    valueIs: 'time',
    valueOf: (row) => row.last_activity_at.toISOString(),
  },
  createdAt: { column: 'created_at', valueIs: 'time', valueOf: (row) => row.created_at.toISOString() },
}

const pageColumns: Record<(typeof pageSorts)[number], string> = {
  id: 'id',
  name: 'name',
  state: 'state',
  snapshot: 'snapshot',
  region: 'region_id',
  updatedAt: 'updated_at',
  createdAt: 'created_at',
  lastActivityAt: 'last_activity_at',
}

const readLabels = (text: string): Record<string, string> => {
  const wrong = () => new Problem('bad_request', 'query.labels must be a JSON object of texts')
  let labels: unknown
  try {
    labels = JSON.parse(text)
  } catch {
    throw wrong()
  }
  if (typeof labels !== 'object' || labels === null || Array.isArray(labels)) throw wrong()
  const texts = Object.entries(labels).flat()
  if (texts.some((each) => typeof each !== 'string' || each.includes('\0') || !each.isWellFormed())) throw wrong()
  return labels as Record<string, string>
}

/** PostgreSQL knows no year 0. */
const time = (text: string): Date => {
  const date = new Date(text)
  if (Number.isNaN(date.getTime()) || date.getUTCFullYear() < 1)
    throw new Problem('bad_request', `${text} is not a time`)
  return date
}

const likeText = (text: string) => text.toLowerCase().replace(/[\\%_]/g, '\\$&')

type Shared = Pick<ListQuery, Exclude<keyof ListQuery & keyof PageQuery, 'sort'>>

/** What both listings filter by. `match` makes the LIKE pattern: a prefix in one, a part in the other. */
const where = (sql: Pool, organizationId: string, query: Shared, match: (text: string) => string) => {
  const given = <T>(value: T, condition: (value: NonNullable<T>) => ReturnType<Pool>) =>
    value === undefined || value === null ? sql`` : condition(value)
  const some = (values: readonly string[] | undefined, column: string) =>
    given(values?.length ? values : undefined, (list) => sql`and ${sql(column)} in ${sql(list as string[])}`)
  return sql`
    where organization_id = ${organizationId} and state <> 'destroyed'
    ${query.includeErroredDeleted ? sql`` : sql`and not (state in ('error', 'build_failed') and desired_state = 'destroyed')`}
    ${given(query.id, (id) => sql`and id like ${match(id)}`)}
    ${given(query.name, (name) => sql`and lower(name) like ${match(name)}`)}
    ${given(query.labels, (labels) => sql`and labels @> ${sql.json(readLabels(labels))}`)}
    ${some(query.states, 'state')}
    ${some(query.snapshots, 'snapshot')}
    ${given(query.minCpu, (n) => sql`and cpu >= ${n}::float8`)}
    ${given(query.maxCpu, (n) => sql`and cpu <= ${n}::float8`)}
    ${given(query.minMemoryGiB, (n) => sql`and memory_gib >= ${n}::float8`)}
    ${given(query.maxMemoryGiB, (n) => sql`and memory_gib <= ${n}::float8`)}
    ${given(query.minDiskGiB, (n) => sql`and disk_gib >= ${n}::float8`)}
    ${given(query.maxDiskGiB, (n) => sql`and disk_gib <= ${n}::float8`)}
    ${given(query.lastEventAfter, (at) => sql`and state_changed_at >= ${time(at)}`)}
    ${given(query.lastEventBefore, (at) => sql`and state_changed_at <= ${time(at)}`)}`
}

const reasonColumns = (sql: Pool) => sql`
  (select runners.state from runners where runners.id = runner_id) as runner_state,
  (select runners.last_heartbeat_at from runners where runners.id = runner_id) as runner_heartbeat_at`

export const listSandboxes = async (
  { sql }: Database,
  organizationId: string,
  query: ListQuery,
): Promise<{ rows: SandboxRow[]; nextCursor: string | null }> => {
  const sort = sorts[query.sort]
  const { order, limit } = query
  const asked = { sort: query.sort, order, valueIs: sort.valueIs }
  const cursor = query.cursor === undefined ? undefined : readCursor(query.cursor, asked)
  const column = sql(sort.column)
  const direction = order === 'asc' ? sql`asc` : sql`desc`
  const beyond = order === 'asc' ? sql`>` : sql`<`
  const from = cursor && (sort.valueIs === 'time' ? new Date(cursor.value) : cursor.value)
  const and = <T>(value: T | undefined, condition: (value: T) => ReturnType<Pool>) =>
    value === undefined ? sql`` : condition(value)
  const rows = await sql<SandboxRow[]>`
    select *, ${reasonColumns(sql)} from sandboxes
    ${where(sql, organizationId, query, (text) => `${likeText(text)}%`)}
    ${query.includeWarm ? sql`` : sql`and warm_pool_id is null`}
    ${and(query.regionIds?.length ? query.regionIds : undefined, (ids) => sql`and region_id in ${sql(ids)}`)}
    ${and(query.sandboxClasses?.length ? query.sandboxClasses : undefined, (all) => sql`and sandbox_class in ${sql(all)}`)}
    ${and(query.isPublic, (is) => sql`and public = ${is}`)}
    ${and(query.isRecoverable, (is) => sql`and coalesce(recoverable, false) = ${is}`)}
    ${and(query.createdAtAfter, (at) => sql`and created_at >= ${time(at)}`)}
    ${and(query.createdAtBefore, (at) => sql`and created_at <= ${time(at)}`)}
    ${and(query.autoDestroyAtAfter, (at) => sql`and auto_destroy_at >= ${time(at)}`)}
    ${and(query.autoDestroyAtBefore, (at) => sql`and auto_destroy_at <= ${time(at)}`)}
    ${and(from, (value) => sql`and (${column}, id) ${beyond} (${value}, ${cursor?.id ?? ''})`)}
    order by ${column} ${direction}, id ${direction}
    limit ${limit + 1}`
  const items = rows.slice(0, limit)
  const last = items.at(-1)
  const nextCursor =
    rows.length > limit && last
      ? writeCursor({ sort: query.sort, order, value: sort.valueOf(last), id: last.id })
      : null
  return { rows: items, nextCursor }
}

export const pageSandboxes = async (
  { sql }: Database,
  organizationId: string,
  query: PageQuery,
): Promise<{ rows: SandboxRow[]; total: number; page: number; totalPages: number }> => {
  const column = sql(pageColumns[query.sort])
  const direction = query.order === 'asc' ? sql`asc` : sql`desc`
  const regions = query.regions?.length ? sql`and region_id in ${sql(query.regions)}` : sql``
  const filter = sql`
    ${where(sql, organizationId, query, (text) => `%${likeText(text)}%`)} and warm_pool_id is null ${regions}`
  const [[counted], rows] = await Promise.all([
    sql<[{ total: number }]>`select count(*)::int as total from sandboxes ${filter}`,
    sql<SandboxRow[]>`
      select *, ${reasonColumns(sql)} from sandboxes ${filter}
      order by ${column} ${direction}, id ${direction}
      limit ${query.limit} offset ${(query.page - 1) * query.limit}`,
  ])
  return { rows, total: counted.total, page: query.page, totalPages: Math.ceil(counted.total / query.limit) }
}
