// The two listings: one goes on from a cursor, the deprecated one counts pages.
//
// The ids of a page are picked in an index that holds what filters ask about, and only their rows are read. So a listing
// costs what its page costs, and at worst one narrow index of the caller's own organization (bench/listing.ts).
import type { Database, Piece, Sql, Transaction } from '#src/control/storage/database.ts'
import { readCursor, writeCursor } from './cursor.ts'
import { type Labels, listConditions, pageConditions, readLabels } from './listing-filters.ts'
import { type ListedRow, listedColumns, type SandboxRow } from './sandbox.ts'
import type { ListQuery, listSorts, PageQuery, pageSorts } from './schemas.ts'

type Sort = { column: string; valueIs: 'text' | 'number' | 'time'; valueOf: (row: ListedRow) => string | number }

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

/**
 * Asks with plans made for the very values that are asked for: one that suits any value reads far too much for a rare one.
 * And never by reading the table, which takes ten times as long as the worst index.
 */
const asking = <T>({ transaction }: Database, work: (sql: Transaction) => Promise<T>): Promise<T> =>
  transaction(async (sql) => {
    await sql`
      select set_config('plan_cache_mode', 'force_custom_plan', true), set_config('enable_seqscan', 'off', true),
        set_config('random_page_cost', '1.1', true)`
    return await work(sql)
  })

/** By a column, then by id, so that no two are equal. */
const orderBy = (sql: Sql, column: string, order: 'asc' | 'desc') =>
  order === 'asc'
    ? sql`sandboxes.${sql(column)} asc, sandboxes.id asc`
    : sql`sandboxes.${sql(column)} desc, sandboxes.id desc`

const listedText = listedColumns.map((name) => `sandboxes.${name}`).join(', ')
const listed = (sql: Sql): Piece => sql.unsafe(listedText)

/** The rows of `picked`. */
const rowsOf = (sql: Sql, columns: Piece, order: Piece) => sql`
  select ${columns}, runners.state as runner_state, runners.last_heartbeat_at as runner_heartbeat_at
  from picked join sandboxes using (id) left join runners on runners.id = sandboxes.runner_id
  order by ${order}`

type Question = {
  organizationId: string
  /** Where the page begins. */
  beginning: (sql: Sql) => Piece
  conditions: (sql: Sql) => Piece
  labels: Labels | undefined
  order: (sql: Sql) => Piece
  limit: number
}

/** Of the sort's index: what conditions ask about. */
const indexed = [
  ...['id', 'name', 'state', 'desired_state', 'snapshot', 'region_id', 'sandbox_class', 'organization_id', 'public'],
  ...['recoverable', 'warm_pool_id', 'cpu', 'memory_gib', 'disk_gib', 'created_at', 'last_activity_at'],
  ...['state_changed_at', 'auto_destroy_at', 'label_signature'],
]

/** So much of the sort's index is read before anything is supposed of how rare the sandboxes are that are asked for. */
const firstLook = 2000

type FirstLook = { rows: ListedRow[] } | { labelsAreCommon: boolean }

/** Of those seen, so many may have the signature of labels that they have not. */
const commonShare = 0.15

/**
 * Most questions have filled their page within the first sandboxes of the sort, or seen all that there are. Any plan is
 * right for this one, so it is made once.
 */
const lookAtFirst = async ({ sql }: Database, question: Question): Promise<FirstLook> => {
  const { organizationId, beginning, conditions, labels, order, limit } = question
  const rows = await sql<(ListedRow & { seen: number | null; signed: number | null })[]>`
    with seen as materialized (
      select ${sql(indexed)} from sandboxes
      where organization_id = ${organizationId} and state <> 'destroyed' ${beginning(sql)}
      order by ${order(sql)} limit ${firstLook}
    ), picked as materialized (
      select id from seen sandboxes where ${conditions(sql)} ${labels ? sql`and ${hasLabels(sql, labels)}` : sql``}
      order by ${order(sql)} limit ${limit}
    ), looked as (
      select case when (select count(*) from picked) < ${limit} then (select count(*)::int from seen) end as seen,
        case when (select count(*) from picked) < ${limit} then
          (select count(*)::int from seen ${labels ? sql`where ${isSigned(sql, labels)}` : sql``}) end as signed
    )
    select looked.*, ${listed(sql)}, runners.state as runner_state, runners.last_heartbeat_at as runner_heartbeat_at
    from looked left join picked on true left join sandboxes on sandboxes.id = picked.id
      left join runners on runners.id = sandboxes.runner_id
    order by ${order(sql)}`
  const { seen, signed } = rows[0] ?? { seen: null, signed: null }
  if (seen !== null && seen >= firstLook) return { labelsAreCommon: (signed ?? 0) > commonShare * seen }
  return { rows: rows.filter(({ id }) => id !== null) }
}

/** Up to so many sandboxes with a label are read and sorted; more are looked for in the order of the listing. */
const fewLabelled = 2000

/** Sandboxes, as something to select from. A function, because who waits for a piece of a question asks it. */
type Source = () => Piece

/**
 * Labels may be larger than an index's entry, so the sorts' indexes have but a signature of them. Sandboxes with a rare
 * label are read first, through the labels' own index; of those with a common one, as many as the page takes.
 */
const matching = async (sql: Transaction, question: Question, labelsAreCommon: boolean): Promise<Source> => {
  const { labels } = question
  const conditions = () => sql`${question.conditions(sql)} ${question.beginning(sql)}`
  if (labels === undefined) return () => sql`sandboxes where ${conditions()}`
  const labelled = () => sql`select * from sandboxes where labels @> ${sql.json(labels)}`
  const areFew = async () => {
    const [found] = await sql<[{ count: number }]>`
      select count(*)::int as count from (${labelled()} limit ${fewLabelled + 1}) labelled`
    return found.count <= fewLabelled
  }
  if (!labelsAreCommon && (await areFew())) {
    return () => sql`
      (with labelled as materialized (${labelled()}) select * from labelled) sandboxes where ${conditions()}`
  }
  return () => sql`
    (select * from sandboxes where ${conditions()} order by ${question.order(sql)} offset 0) sandboxes
    where ${hasLabels(sql, labels)}`
}

/**
 * Subqueries where a function and a join would do: the signature that is asked for is reckoned once, and a sandbox's labels
 * are looked up one after the other, no further than the page goes.
 */
const hasLabels = (sql: Sql, labels: Labels): Piece => sql`
  ${isSigned(sql, labels)}
  and (select labels @> ${sql.json(labels)} from sandboxes labelled where labelled.id = sandboxes.id)`

const isSigned = (sql: Sql, labels: Labels): Piece => {
  const asked = sql.json(labels)
  return sql`label_signature & (select label_signature(${asked})) = (select label_signature(${asked}))`
}

const pick = async (database: Database, question: Question): Promise<ListedRow[]> => {
  const first = await lookAtFirst(database, question)
  if ('rows' in first) return first.rows
  return await asking(database, async (sql) => {
    const source = await matching(sql, question, first.labelsAreCommon)
    const order = question.order(sql)
    return await sql<ListedRow[]>`
      with picked as materialized (
        select id from ${source()} order by ${order} limit ${question.limit}
      ) ${rowsOf(sql, listed(sql), order)}`
  })
}

export const listSandboxes = async (
  database: Database,
  organizationId: string,
  query: ListQuery,
): Promise<{ rows: ListedRow[]; nextCursor: string | null }> => {
  const { order, limit } = query
  const { column, valueIs, valueOf: keyOf } = sorts[query.sort]
  const cursor = query.cursor === undefined ? undefined : readCursor(query.cursor, { ...query, valueIs })
  const beginning = (sql: Sql) => {
    if (cursor === undefined) return sql``
    const value = valueIs === 'time' ? new Date(cursor.value) : cursor.value
    return sql`and (${sql(column)}, id) ${order === 'asc' ? sql`>` : sql`<`} (${value}, ${cursor.id})`
  }
  const rows = await pick(database, {
    organizationId,
    beginning,
    conditions: (sql) => listConditions(sql, organizationId, query),
    labels: readLabels(query.labels),
    order: (sql) => orderBy(sql, column, order),
    limit: limit + 1,
  })
  const items = rows.slice(0, limit)
  const last = rows.length > limit ? items.at(-1) : undefined
  const nextCursor = last ? writeCursor({ sort: query.sort, order, value: keyOf(last), id: last.id }) : null
  return { rows: items, nextCursor }
}

/** The total is exact, so this one reads what matches to its end. */
export const pageSandboxes = (
  database: Database,
  organizationId: string,
  query: PageQuery,
): Promise<{ rows: SandboxRow[]; total: number; page: number; totalPages: number }> => {
  const { page, limit } = query
  const labels = readLabels(query.labels)
  return asking(database, async (sql) => {
    const order = orderBy(sql, pageColumns[query.sort], query.order)
    const conditions = sql`
      ${pageConditions(sql, organizationId, query)} ${labels ? sql`and labels @> ${sql.json(labels)}` : sql``}`
    const [{ total }] = await sql<[{ total: number }]>`select count(*)::int as total from sandboxes where ${conditions}`
    const skipped = (page - 1) * limit
    const rows =
      skipped >= total
        ? []
        : await sql<SandboxRow[]>`
            with picked as materialized (
              select id from sandboxes where ${conditions} order by ${order} limit ${limit} offset ${skipped}
            ) ${rowsOf(sql, sql`sandboxes.*`, order)}`
    return { rows, total, page, totalPages: Math.ceil(total / limit) }
  })
}
