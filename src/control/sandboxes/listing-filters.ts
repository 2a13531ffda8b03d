// What listings filter by, as conditions that indexes can answer. A number or a time that the database could not hold is
// brought into its range, or refused where it means nothing.
import type { Piece, Sql } from '#src/control/storage/database.ts'
import { Problem } from '#src/problems.ts'
import type { ListQuery, PageQuery } from './schemas.ts'

type Shared = Pick<ListQuery, Exclude<keyof ListQuery & keyof PageQuery, 'sort'>>

const largestInteger = 2 ** 31 - 1
const atLeast = (amount: number) => Math.min(largestInteger, Math.ceil(amount))
const atMost = (amount: number) => Math.min(largestInteger, Math.floor(amount))

/** PostgreSQL knows no year 0, and year 10,000 is written in another way. */
const time = (text: string): Date => {
  const date = new Date(text)
  const year = date.getUTCFullYear()
  if (!(year >= 1 && year <= 9999)) throw new Problem('bad_request', `${text} is not a time`)
  return date
}

const likeText = (text: string) => text.toLowerCase().replace(/[\\%_]/g, '\\$&')

/** Nothing where the filter is not given. */
const and = <T>(sql: Sql, value: T | undefined, condition: (value: NonNullable<T>) => Piece): Piece => {
  const isGiven = value !== undefined && value !== null && !(Array.isArray(value) && value.length === 0)
  return isGiven ? sql`and ${condition(value)}` : sql``
}

/** What both filter by. `match` makes the LIKE pattern: a prefix in one, a part in the other. */
const shared = (sql: Sql, organizationId: string, query: Shared, match: (text: string) => string): Piece => sql`
  organization_id = ${organizationId} and state <> 'destroyed'
  ${query.includeErroredDeleted ? sql`` : sql`and not (state in ('error', 'build_failed') and desired_state = 'destroyed')`}
  ${and(sql, query.id, (id) => sql`id like ${match(id)}`)}
  ${and(sql, query.name, (name) => sql`lower(name) like ${match(name)}`)}
  ${and(sql, query.states, (states) => sql`state in ${sql(states)}`)}
  ${and(sql, query.snapshots, (snapshots) => sql`snapshot in ${sql(snapshots)}`)}
  ${and(sql, query.minCpu, (cpu) => sql`cpu >= ${atLeast(cpu)}`)}
  ${and(sql, query.maxCpu, (cpu) => sql`cpu <= ${atMost(cpu)}`)}
  ${and(sql, query.minMemoryGiB, (gib) => sql`memory_gib >= ${atLeast(gib)}`)}
  ${and(sql, query.maxMemoryGiB, (gib) => sql`memory_gib <= ${atMost(gib)}`)}
  ${and(sql, query.minDiskGiB, (gib) => sql`disk_gib >= ${atLeast(gib)}`)}
  ${and(sql, query.maxDiskGiB, (gib) => sql`disk_gib <= ${atMost(gib)}`)}
  ${and(sql, query.lastEventAfter, (at) => sql`state_changed_at >= ${time(at)}`)}
  ${and(sql, query.lastEventBefore, (at) => sql`state_changed_at <= ${time(at)}`)}`

export const listConditions = (sql: Sql, organizationId: string, query: ListQuery): Piece => sql`
  ${shared(sql, organizationId, query, (text) => `${likeText(text)}%`)}
  ${query.includeWarm ? sql`` : sql`and warm_pool_id is null`}
  ${and(sql, query.regionIds, (ids) => sql`region_id in ${sql(ids)}`)}
  ${and(sql, query.sandboxClasses, (classes) => sql`sandbox_class in ${sql(classes)}`)}
  ${and(sql, query.isPublic, (is) => sql`public = ${is}`)}
  ${and(sql, query.isRecoverable, (is) => sql`coalesce(recoverable, false) = ${is}`)}
  ${and(sql, query.createdAtAfter, (at) => sql`created_at >= ${time(at)}`)}
  ${and(sql, query.createdAtBefore, (at) => sql`created_at <= ${time(at)}`)}
  ${and(sql, query.autoDestroyAtAfter, (at) => sql`auto_destroy_at >= ${time(at)}`)}
  ${and(sql, query.autoDestroyAtBefore, (at) => sql`auto_destroy_at <= ${time(at)}`)}`

export const pageConditions = (sql: Sql, organizationId: string, query: PageQuery): Piece => sql`
  ${shared(sql, organizationId, query, (text) => `%${likeText(text)}%`)} and warm_pool_id is null
  ${and(sql, query.regions, (ids) => sql`region_id in ${sql(ids)}`)}`

export type Labels = Record<string, string>

/** `undefined` where nothing is asked of them. */
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
