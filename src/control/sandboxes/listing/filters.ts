// Turns the filters of the sandbox listings into SQL conditions for which PostgreSQL can use indexes. Numbers outside the
// database's range become the nearest number. Times outside the database's range are refused.

import type { Piece, Sql } from '#src/control/storage/database.ts'
import { Problem } from '#src/problems.ts'
import type { ListQuery, PageQuery } from '../record/schemas.ts'

type Shared = Pick<ListQuery, Exclude<keyof ListQuery & keyof PageQuery, 'sort'>>

const largestInteger = 2 ** 31 - 1
const atLeast = (amount: number) => Math.min(largestInteger, Math.ceil(amount))
const atMost = (amount: number) => Math.min(largestInteger, Math.floor(amount))

/**
 * Throws 400 for a time outside the years 1 to 9999: PostgreSQL has no year 0 and cannot read how JavaScript writes
 * later years.
 */
const time = (text: string): Date => {
  const date = new Date(text)
  const year = date.getUTCFullYear()
  if (!(year >= 1 && year <= 9999)) throw new Problem('bad_request', `${text} is not a time`)
  return date
}

const likeText = (text: string) => text.toLowerCase().replace(/[\\%_]/g, '\\$&')

/**
 * These functions return null for a filter that the caller left out: `$1 is null or …` is then true. So the SQL text is the same
 * with and without the filter, and few queries need to be cached.
 */
const texts = (list: readonly string[] | undefined): string[] | null => (list?.length ? [...list] : null)
const at = (text: string | undefined): Date | null => (text === undefined ? null : time(text))
const like = (text: string | undefined, pattern: (text: string) => string) =>
  text === undefined ? null : pattern(likeText(text))

type Range = { column: string; from: number | Date | null; to: number | Date | null; type: 'integer' | 'timestamptz' }

const within = (sql: Sql, { column, from, to, type }: Range): Piece => sql`
  and (${from}::${sql.unsafe(type)} is null or ${sql(column)} >= ${from})
  and (${to}::${sql.unsafe(type)} is null or ${sql(column)} <= ${to})`

const sizes = (sql: Sql, column: string, least: number | undefined, most: number | undefined): Piece =>
  within(sql, {
    column,
    from: least === undefined ? null : atLeast(least),
    to: most === undefined ? null : atMost(most),
    type: 'integer',
  })

const times = (sql: Sql, column: string, after: string | undefined, before: string | undefined): Piece =>
  within(sql, { column, from: at(after), to: at(before), type: 'timestamptz' })

const oneOf = (sql: Sql, column: string, values: string[] | null): Piece =>
  sql`and (${values}::text[] is null or ${sql(column)} = any(${values}::text[]))`

/** SQL condition that selects which sandboxes a listing may contain, for example all except destroyed ones. */
type Among = (sql: Sql) => Piece

/** SQL condition for all sandboxes except destroyed ones. The indexes for sorting contain exactly these sandboxes. */
export const present: Among = (sql) => sql`state <> 'destroyed'`

/**
 * SQL condition for sandboxes that an operator evicted after `since`: destroyed to free their resources (verbs/evict.ts). Listings
 * of destroyed sandboxes show these sandboxes.
 */
export const evicted =
  (since: Date): Among =>
  (sql) =>
    sql`state = 'destroyed' and spot_evicted_at > ${since}`

const presentAndEvicted =
  (since: Date): Among =>
  (sql) =>
    sql`(${present(sql)} or (${evicted(since)(sql)}))`

type Where = {
  organizationId: string
  among: Among
  /** Makes the LIKE pattern for a searched text. The cursor listing matches prefixes, the paginated listing any part. */
  match: (text: string) => string
}

/**
 * The SQL conditions that `GET /sandbox` and `GET /sandbox/paginated` have in common. For exactly one state, the condition uses
 * `=`, so that PostgreSQL can read an index in the order of last activity.
 */
const shared = (sql: Sql, query: Shared, { organizationId, among, match }: Where): Piece => {
  const id = like(query.id, match)
  const name = like(query.name, match)
  return sql`
    organization_id = ${organizationId} and ${among(sql)}
    and (${query.includeErroredDeleted}::boolean
      or not (state in ('error', 'build_failed') and desired_state = 'destroyed'))
    and (${id}::text is null or id like ${id})
    and (${name}::text is null or lower(name) like ${name})
    ${query.states?.length === 1 ? sql`and state = ${query.states[0] as string}` : oneOf(sql, 'state', texts(query.states))}
    ${oneOf(sql, 'snapshot', texts(query.snapshots))}
    ${sizes(sql, 'cpu', query.minCpu, query.maxCpu)}
    ${sizes(sql, 'memory_gib', query.minMemoryGiB, query.maxMemoryGiB)}
    ${sizes(sql, 'disk_gib', query.minDiskGiB, query.maxDiskGiB)}
    ${lastEvent(sql, at(query.lastEventAfter), at(query.lastEventBefore))}`
}

/** Filters by the last change of state or the last activity, whichever is later. So no sandbox in use is found as idle. */
const lastEvent = (sql: Sql, after: Date | null, before: Date | null): Piece => sql`
  and (${after}::timestamptz is null or state_changed_at >= ${after} or last_activity_at >= ${after})
  and (${before}::timestamptz is null or (state_changed_at <= ${before} and last_activity_at <= ${before}))`

export const listConditions = (sql: Sql, organizationId: string, query: ListQuery, among: Among): Piece => {
  const { isPublic = null, isRecoverable = null } = query
  return sql`
    ${shared(sql, query, { organizationId, among, match: (text) => `${text}%` })}
    and (${query.includeWarm}::boolean or warm_pool_id is null)
    and (${isPublic}::boolean is null or public = ${isPublic})
    and (${isRecoverable}::boolean is null or coalesce(recoverable, false) = ${isRecoverable})
    ${oneOf(sql, 'region_id', texts(query.regionIds))}
    ${oneOf(sql, 'sandbox_class', texts(query.sandboxClasses))}
    ${times(sql, 'created_at', query.createdAtAfter, query.createdAtBefore)}
    ${times(sql, 'auto_destroy_at', query.autoDestroyAtAfter, query.autoDestroyAtBefore)}`
}

const between = (column: string, from: number | Date | null, to: number | Date | null) => (sql: Sql) =>
  sql`
  ${from === null ? sql`` : sql`and ${sql(column)} >= ${from}`} ${to === null ? sql`` : sql`and ${sql(column)} <= ${to}`}`

/** In a listing by last activity, up to this many states become one subquery each. For more states, a single subquery is faster. */
const fewStates = 4

/**
 * Returns one SQL condition for each range of the index to read. Every match is in exactly one range. Absent filters
 * are not in the SQL text: `$1 is null or …` could make PostgreSQL read the whole index.
 */
export const stretchesOf = (query: ListQuery): ((sql: Sql) => Piece)[] => {
  const size = (column: string, least: number | undefined, most: number | undefined) =>
    between(column, least === undefined ? null : atLeast(least), most === undefined ? null : atMost(most))
  switch (query.sort) {
    case 'cpu':
      return [size('cpu', query.minCpu, query.maxCpu)]
    case 'memoryGib':
      return [size('memory_gib', query.minMemoryGiB, query.maxMemoryGiB)]
    case 'diskGib':
      return [size('disk_gib', query.minDiskGiB, query.maxDiskGiB)]
    case 'createdAt':
      return [between('created_at', at(query.createdAtAfter), at(query.createdAtBefore))]
    case 'lastActivityAt': {
      const states = new Set(query.states)
      if (states.size > 0 && states.size <= fewStates)
        return [...states].map((state) => (sql) => sql`and state = ${state}`)
      return [(sql) => sql``]
    }
    default:
      return [(sql) => sql``]
  }
}

/**
 * The SQL conditions of the listing with page numbers. The state `destroyed` finds only sandboxes that an operator
 * evicted after `since` (`evictSandbox`).
 */
export const pageConditions = (sql: Sql, organizationId: string, query: PageQuery, since: Date): Piece => {
  const among = query.states?.includes('destroyed') ? presentAndEvicted(since) : present
  return sql`
    ${shared(sql, query, { organizationId, among, match: (text) => `%${text}%` })} and warm_pool_id is null
    ${oneOf(sql, 'region_id', texts(query.regions))}`
}

export type Labels = Record<string, string>

/** Reads the filter by labels from the query. Returns `undefined` if the query has no such filter. */
export const readLabels = (text: string | undefined): Labels | undefined => {
  if (text === undefined) return undefined
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
  return texts.length === 0 ? undefined : (labels as Labels)
}
