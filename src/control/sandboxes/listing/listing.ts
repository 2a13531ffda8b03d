// The two listings: one goes on from a cursor, the deprecated one counts pages.
//
// The ids of a page are picked in an index that holds what filters ask about, and only their rows are read. The page is looked
// for at the beginning of its sort; what is not found there is found by the filter that leaves the fewest, and then sorted.
// So a listing costs what its page costs, and at worst what one of its filters leaves of the caller's own organization
// (bench/listing.ts).

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
 * Asks with plans made for the very values that are asked for: one that suits any value reads far too much for a rare one.
 * And never by reading the table, which takes ten times as long as the worst index. `tablePage` is what reading one page of the
 * table among many counts, where one of an index counts 1.1.
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

/** By a column, then by id, so that no two are equal. */
const orderOf = (sql: Sql, { column, order }: { column: string; order: 'asc' | 'desc' }) =>
  order === 'asc'
    ? sql`sandboxes.${sql(column)} asc, sandboxes.id asc`
    : sql`sandboxes.${sql(column)} desc, sandboxes.id desc`

const listedText = listedColumns.map((name) => `sandboxes.${name}`).join(', ')
const listed = (sql: Sql): Piece => sql.unsafe(listedText)

/** The rows of `picked`. */
const rowsOf = (sql: Sql, columns: Piece, order: Piece) => sql`
  select ${columns}, runners.is_silent as runner_is_silent, runners.last_heartbeat_at as runner_heartbeat_at
  from picked join sandboxes using (id) left join runners on runners.id = sandboxes.runner_id
  order by ${order}`

type Question = {
  organizationId: string
  /** Where the page begins. */
  beginning: (sql: Sql) => Piece
  /** Parts that the conditions leave of an index in the sort's order. */
  stretches: readonly ((sql: Sql) => Piece)[]
  conditions: (sql: Sql) => Piece
  labels: Labels | undefined
  column: string
  order: 'asc' | 'desc'
  limit: number
}

/** Columns in the sort's index that conditions ask about. */
const indexed = [
  ...['id', 'name', 'state', 'desired_state', 'snapshot', 'region_id', 'sandbox_class', 'organization_id', 'public'],
  ...['recoverable', 'warm_pool_id', 'cpu', 'memory_gib', 'disk_gib', 'created_at', 'last_activity_at'],
  ...['state_changed_at', 'auto_destroy_at', 'label_signature'],
]

/** How much of the sort's index is read before anything is supposed of how rare the sandboxes are that are asked for. */
const firstLook = 2000

type Look = { rows: ListedRow[]; isEnough: boolean }

/**
 * What the page has of the first sandboxes of the sort, which is enough if it fills the page or those are all there are.
 * It reads an index in its order and stops: any plan of it is right.
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
    select looked.*, ${listed(sql)}, runners.is_silent as runner_is_silent, runners.last_heartbeat_at as runner_heartbeat_at
    from looked left join picked on true left join sandboxes on sandboxes.id = picked.id
      left join runners on runners.id = sandboxes.runner_id
    order by ${order()}`
  const { seen } = rows[0] ?? { seen: null }
  return { rows: rows.filter(({ id }) => id !== null), isEnough: seen === null || seen < depth }
}

/** A subquery, so that the signature that is asked for is reckoned once. */
const isSigned = (sql: Sql, labels: Labels): Piece => {
  const asked = sql.json(labels)
  return sql`label_signature & (select label_signature(${asked})) = (select label_signature(${asked}))`
}

/** A subquery where a join would do: labels are looked up one sandbox after the other, no further than the page goes. */
const hasLabels = (sql: Sql, labels: Labels): Piece =>
  sql`(select labels @> ${sql.json(labels)} from sandboxes labelled where labelled.id = sandboxes.id)`

/**
 * Ways to the ids of a page, in each of which those that are asked for are found by whatever leaves the fewest, and only then
 * sorted. Let to look for them along the sort, PostgreSQL does so in the hope that they are spread evenly, of which the first
 * look has shown the contrary.
 *
 * Labels may be larger than an index's entry, so the sorts' indexes have but a signature of them. Either the labels are found
 * in an index of their own, and each sandbox read from the table; or the signature is, and of those the page takes are read.
 */
const ways = (sql: Sql, question: Question): (() => Piece)[] => {
  const { labels, column, limit } = question
  const conditions = () => sql`${question.conditions(sql)} ${question.beginning(sql)}`
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

/** What PostgreSQL reckons that a question costs, in its own units. Reckoning takes it half a millisecond. */
const costOf = async (sql: Sql, question: Piece): Promise<number> => {
  const [plan] = await sql<[{ 'QUERY PLAN': string }]>`explain ${question}`
  return Number(/cost=[\d.]+\.\.([\d.]+)/.exec(plan['QUERY PLAN'])?.[1])
}

/** What it reckons for a sandbox that is looked at in an index of a sort. */
const costOfLook = 0.07

/** Rows that are read in hope before other plans are estimated, which takes as long. */
const hopefulLook = 6000

/** More than so many are not looked at in hope: in vain, that costs half as much as looking at all of them. */
const longestLook = 40_000

/**
 * A page of the table has few of the sandboxes that an index finds, and is read for each again; measured, it costs as much as three
 * of an index that is read from one end to the other.
 */
const tablePage = 3

const pick = async (database: Database, question: Question): Promise<ListedRow[]> => {
  const first = await look(database.sql, question, firstLook)
  if (first.isEnough) return first.rows
  return await asking(database, { tablePage }, async (sql) => {
    // If they go on as they begin. Twice as many are looked at, since they may be a little rarer.
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

/** The few that are found by their own index, whatever the sort. */
const pickEvicted = (sql: Sql, question: Question) => {
  const { labels, limit } = question
  return sql<ListedRow[]>`
    with picked as materialized (
      select id from sandboxes where ${question.conditions(sql)} ${question.beginning(sql)}
        ${labels ? sql`and labels @> ${sql.json(labels)}` : sql``}
      order by ${orderOf(sql, question)} limit ${limit}
    ) ${rowsOf(sql, listed(sql), orderOf(sql, question))}`
}

/** Compares as PostgreSQL does, by code points. */
const compareKeys = (one: string | number, other: string | number): number =>
  typeof one === 'number' ? one - Number(other) : Buffer.compare(Buffer.from(one), Buffer.from(String(other)))

const inOrder = (rows: ListedRow[], { valueOf: keyOf }: Sort, order: 'asc' | 'desc'): ListedRow[] => {
  const sign = order === 'asc' ? 1 : -1
  return rows.sort((a, b) => sign * (compareKeys(keyOf(a), keyOf(b)) || compareKeys(a.id, b.id)))
}

/** What was evicted within a day before `now` is listed where destroyed ones are asked for. */
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
 * Counts and answers one page. The total is exact, so everything that matches is read. What was evicted within a day before
 * `now` is listed where destroyed ones are asked for.
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
