// The two listings of sandboxes: `GET /sandbox` with cursors, and the deprecated `GET /sandbox/paginated` with page numbers. A
// listing with cursors first searches the beginning of an index that has the listing's sort order. If the matches there do not fill
// the page, the listing finds and sorts all matches. At worst, it reads all sandboxes of the organization that match its most
// selective filter (bench/listing.ts).

import { readCursor, writeCursor } from '#src/control/cursor.ts'
import type { Database, Piece, Sql, Transaction } from '#src/control/storage/database.ts'
import { listedColumns } from '../record/columns.ts'
import type { ListedRow, SandboxRow } from '../record/sandbox.ts'
import type { ListQuery, listSorts, PageQuery, pageSorts } from '../record/schemas.ts'
import { evictedSince } from '../verbs/evict.ts'
import { evicted, type Labels, listConditions, pageConditions, present, readLabels, stretchesOf } from './filters.ts'

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
 * Runs `work` in a transaction that changes how PostgreSQL plans queries. PostgreSQL then plans each query for its actual values,
 * because a plan for all values may read far too many rows. Sequential scans are off, because they take ten times as long as
 * reading the worst index. `tablePage`: the planner's cost of a table page. The cost of an index page is 1.1.
 */
const asking = <T>(
  { transaction }: Database,
  { tablePage }: { tablePage: number },
  work: (sql: Transaction) => Promise<T>,
): Promise<T> =>
  transaction(async (sql) => {
    await sql`
      select set_config('plan_cache_mode', 'force_custom_plan', true), set_config('enable_seqscan', 'off', true),
        set_config('random_page_cost', '1.1', true), set_config('seq_page_cost', ${String(tablePage)}, true)`
    return await work(sql)
  })

/** Orders by a column, then by id, so that the order is unique. */
const orderOf = (sql: Sql, { column, order }: { column: string; order: 'asc' | 'desc' }) =>
  order === 'asc'
    ? sql`sandboxes.${sql(column)} asc, sandboxes.id asc`
    : sql`sandboxes.${sql(column)} desc, sandboxes.id desc`

const listedText = listedColumns.map((name) => `sandboxes.${name}`).join(', ')
const listed = (sql: Sql): Piece => sql.unsafe(listedText)

/** SQL that reads the rows of the sandboxes in `picked`. The caller's query must define `picked`, a table of sandbox ids. */
const rowsOf = (sql: Sql, columns: Piece, order: Piece) => sql`
  select ${columns}, runners.is_silent as runner_is_silent, runners.last_heartbeat_at as runner_heartbeat_at,
      runners.gate_public_url as runner_gate_url
  from picked join sandboxes using (id) left join runners on runners.id = sandboxes.runner_id
  order by ${order}`

type Question = {
  organizationId: string
  /** SQL condition that selects the sandboxes after the caller's cursor, in the order of the listing. */
  beginning: (sql: Sql) => Piece
  /** SQL conditions, one for each range of the index that can contain matches. Only these ranges are read. */
  stretches: readonly ((sql: Sql) => Piece)[]
  conditions: (sql: Sql) => Piece
  labels: Labels | undefined
  column: string
  order: 'asc' | 'desc'
  limit: number
}

/** The columns that filters use. Each index for sorting contains all these columns. */
const indexed = [
  ...['id', 'name', 'state', 'desired_state', 'snapshot', 'region_id', 'sandbox_class', 'organization_id', 'public'],
  ...['recoverable', 'warm_pool_id', 'cpu', 'memory_gib', 'disk_gib', 'created_at', 'last_activity_at'],
  ...['state_changed_at', 'auto_destroy_at', 'label_signature'],
]

/** The function `pick` first reads this many index entries, to estimate how rare the matches are. */
const firstLook = 2000

type Look = { rows: ListedRow[]; isEnough: boolean }

/**
 * Searches the first `depth` sandboxes in sort order for matches. `isEnough`: the matches fill the page, or there are no more
 * sandboxes.
 */
const look = async (sql: Sql, question: Question, depth: number): Promise<Look> => {
  const { organizationId, beginning, stretches, conditions, labels, limit } = question
  const order = () => orderOf(sql, question)
  const read = () =>
    stretches
      .map(
        (stretch) => sql`(
          select ${sql(indexed)} from sandboxes
          where organization_id = ${organizationId} and state <> 'destroyed' ${stretch(sql)} ${beginning(sql)}
          order by ${order()} limit ${depth})`,
      )
      .reduce((before, each) => sql`${before} union all ${each}`)
  const rows = await sql<(ListedRow & { seen: number | null })[]>`
    with picked as materialized (
      select id from (select * from (${read()}) sandboxes order by ${order()} limit ${depth}) sandboxes
      where ${conditions(sql)} ${labels ? sql`and ${isSigned(sql, labels)} and ${hasLabels(sql, labels)}` : sql``}
      order by ${order()} limit ${limit}
    ), looked as (
      select case when (select count(*) from picked) < ${limit} then
        (select count(*)::int from (select from (${read()}) seen limit ${depth}) seen) end as seen
    )
    select looked.*, ${listed(sql)}, runners.is_silent as runner_is_silent, runners.last_heartbeat_at as runner_heartbeat_at,
      runners.gate_public_url as runner_gate_url
    from looked left join picked on true left join sandboxes on sandboxes.id = picked.id
      left join runners on runners.id = sandboxes.runner_id
    order by ${order()}`
  const { seen } = rows[0] ?? { seen: null }
  return { rows: rows.filter(({ id }) => id !== null), isEnough: seen === null || seen < depth }
}

/**
 * SQL condition that is true if a sandbox may have the wanted labels. Each label sets some bits in the sandbox's
 * signature, which is short enough for an index. The subquery makes PostgreSQL compute the wanted bits only once.
 */
const isSigned = (sql: Sql, labels: Labels): Piece => {
  const asked = sql.json(labels)
  return sql`label_signature & (select label_signature(${asked})) = (select label_signature(${asked}))`
}

/** A subquery and no join: PostgreSQL then reads the labels of one sandbox at a time, and stops when the page is full. */
const hasLabels = (sql: Sql, labels: Labels): Piece =>
  sql`(select labels @> ${sql.json(labels)} from sandboxes labelled where labelled.id = sandboxes.id)`

/**
 * Returns one or two SQL queries for a filter with few matches. The function `pick` runs the cheapest query. The first query finds
 * all matches, and then sorts them.
 *
 * A filter by labels has two queries. The first query finds the labels in their own index, and reads each match from the table. The
 * second query reads sandboxes in sort order, from an index for sorting. Labels can be too large for that index. So the index has
 * only a short signature of each sandbox's labels. If the signature matches (see `isSigned`), the second query compares the labels.
 */
const ways = (sql: Sql, question: Question): (() => Piece)[] => {
  const { labels, column, limit } = question
  const conditions = () => sql`${question.conditions(sql)} ${question.beginning(sql)}`
  // `offset 0` makes PostgreSQL find all matches before it sorts them. A search in sort order would be useless: the function `look`
  // has already made such a search, and found too few matches.
  const found = (more: Piece) => sql`select id, ${sql(column)} from sandboxes where ${conditions()} ${more} offset 0`
  const order = () => orderOf(sql, question)
  const picked = (more: Piece) => sql`select id from (${found(more)}) sandboxes order by ${order()} limit ${limit}`
  if (labels === undefined) return [() => picked(sql``)]
  return [
    () => picked(sql`and labels @> ${sql.json(labels)}`),
    () => sql`
      select id from (
        select id, ${sql(column)} from sandboxes where ${conditions()} and ${isSigned(sql, labels)}
        order by ${order()} offset 0
      ) sandboxes
      where ${hasLabels(sql, labels)} order by ${order()} limit ${limit}`,
  ]
}

/** PostgreSQL's estimated cost of a query, in its own units. The estimate takes half a millisecond. */
const costOf = async (sql: Sql, question: Piece): Promise<number> => {
  const [plan] = await sql<[{ 'QUERY PLAN': string }]>`explain ${question}`
  return Number(/cost=[\d.]+\.\.([\d.]+)/.exec(plan['QUERY PLAN'])?.[1])
}

/**
 * PostgreSQL's estimated cost of reading one sandbox through the index that has the order of the listing, in the units
 * of `costOf`.
 */
const costOfLook = 0.07

/**
 * The function `pick` estimates how many sandboxes it must read. If the estimate is at most this constant, `pick` reads
 * immediately. `pick` does not call the function `costOf` first, because the call would take as long as the read.
 */
const hopefulLook = 6000

/**
 * Maximum number of sandboxes that `pick` reads in sort order. If the page may need more, `pick` runs a query of the function
 * `ways` instead.
 */
const longestLook = 40_000

/**
 * Measured cost of a table page, for PostgreSQL's planner. An index page costs 1.1. Table pages cost more because matches are
 * spread over the table.
 */
const tablePage = 3

const pick = async (database: Database, question: Question): Promise<ListedRow[]> => {
  const first = await look(database.sql, question, firstLook)
  if (first.isEnough) return first.rows
  return await asking(database, { tablePage }, async (sql) => {
    // `expected`: rows to read if matches are as frequent everywhere as in the first rows. Later rows may contain fewer, so
    // `lookFurther` reads twice as many.
    const expected = firstLook * (question.limit / first.rows.length)
    const lookFurther = () => look(sql, question, Math.ceil(2 * expected))
    const hopeful = expected <= hopefulLook ? await lookFurther() : undefined
    if (hopeful?.isEnough) return hopeful.rows

    const mayGoOn = hopeful === undefined && 2 * expected <= longestLook
    const possible = ways(sql, question)
    const hasChoice = mayGoOn || possible.length > 1
    const costs = hasChoice ? await Promise.all(possible.map((way) => costOf(sql, way()))) : [0]
    const least = Math.min(...costs)
    const best = possible[costs.indexOf(least)]!
    const further = mayGoOn && expected * costOfLook < least ? await lookFurther() : undefined
    if (further?.isEnough) return further.rows
    return await sql<ListedRow[]>`
      with picked as materialized (${best()}) ${rowsOf(sql, listed(sql), orderOf(sql, question))}`
  })
}

/** Lists evicted sandboxes: an operator destroyed them to free resources. They are few, so every sort order is fast. */
const pickEvicted = (sql: Sql, question: Question) => {
  const { labels, limit } = question
  return sql<ListedRow[]>`
    with picked as materialized (
      select id from sandboxes where ${question.conditions(sql)} ${question.beginning(sql)}
        ${labels ? sql`and labels @> ${sql.json(labels)}` : sql``}
      order by ${orderOf(sql, question)} limit ${limit}
    ) ${rowsOf(sql, listed(sql), orderOf(sql, question))}`
}

/** Compares two sort keys like PostgreSQL, by code points. */
const compareKeys = (one: string | number, other: string | number): number =>
  typeof one === 'number' ? one - Number(other) : Buffer.compare(Buffer.from(one), Buffer.from(String(other)))

const inOrder = (rows: ListedRow[], { valueOf: keyOf }: Sort, order: 'asc' | 'desc'): ListedRow[] => {
  const sign = order === 'asc' ? 1 : -1
  return rows.sort((a, b) => sign * (compareKeys(keyOf(a), keyOf(b)) || compareKeys(a.id, b.id)))
}

/**
 * Lists sandboxes by cursor. A destroyed sandbox is listed only if an operator destroyed it to free resources, within a day before
 * `now`.
 */
export const listSandboxes = async (
  database: Database,
  organizationId: string,
  query: ListQuery,
  now: Date,
): Promise<{ rows: ListedRow[]; nextCursor: string | null }> => {
  const { order, limit } = query
  const sort = sorts[query.sort]
  const { column, valueIs, valueOf: keyOf } = sort
  const cursor = query.cursor === undefined ? undefined : readCursor(query.cursor, { ...query, valueIs })
  const beginning = (sql: Sql) => {
    if (cursor === undefined) return sql``
    const value = valueIs === 'time' ? new Date(cursor.value) : cursor.value
    return sql`and (${sql(column)}, id) ${order === 'asc' ? sql`>` : sql`<`} (${value}, ${cursor.id})`
  }
  const labels = readLabels(query.labels)
  const question = (asked: ListQuery, among = present): Question => ({
    ...{ organizationId, beginning, labels, column, order, limit: limit + 1 },
    stretches: stretchesOf(asked),
    conditions: (sql) => listConditions(sql, organizationId, asked, among),
  })
  const [gone, states] = [query.states?.includes('destroyed'), query.states?.filter((state) => state !== 'destroyed')]
  const [here, away] = await Promise.all([
    gone && states?.length === 0 ? [] : pick(database, question({ ...query, ...(states && { states }) })),
    gone ? pickEvicted(database.sql, question({ ...query, states: ['destroyed'] }, evicted(evictedSince(now)))) : [],
  ])
  const rows = away.length === 0 ? here : inOrder([...here, ...away], sort, order)
  const items = rows.slice(0, limit)
  const last = rows.length > limit ? items.at(-1) : undefined
  const nextCursor = last ? writeCursor({ sort: query.sort, order, value: keyOf(last), id: last.id }) : null
  return { rows: items, nextCursor }
}

/**
 * Returns one page, and the exact total of matches. A destroyed sandbox matches only if an operator destroyed it to free resources,
 * in the last day.
 */
export const pageSandboxes = (
  database: Database,
  organizationId: string,
  query: PageQuery,
  now: Date,
): Promise<{ rows: SandboxRow[]; total: number; page: number; totalPages: number }> => {
  const { page, limit } = query
  const labels = readLabels(query.labels)
  return asking(database, { tablePage: 1 }, async (sql) => {
    const order = orderOf(sql, { column: pageColumns[query.sort], order: query.order })
    const conditions = sql`
      ${pageConditions(sql, organizationId, query, evictedSince(now))} ${labels ? sql`and labels @> ${sql.json(labels)}` : sql``}`
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
