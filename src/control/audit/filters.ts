// The filters of the audit log as SQL: `action[eq]`, `targetId[in]`, `statusCode[gte]` and so on.
import { Problem } from '#src/problems.ts'
import type { Sql } from '../storage/database.ts'
import { auditedCalls, scenarioOf } from './scenarios.ts'
import { type AuditQuery, filteredTexts } from './schemas.ts'

type Condition = ReturnType<Sql>

/**
 * Parses a time. Throws 400 for years outside 1 to 9999: PostgreSQL cannot read the form in which JavaScript writes
 * such years.
 */
const readTime = (name: string, text: unknown): Date => {
  const time = new Date(text as string)
  const year = time.getUTCFullYear()
  if (!(year >= 1 && year <= 9999)) throw new Problem('bad_request', `query.${name} is not a date`)
  return time
}

/**
 * SQL condition: the call of an audit row has one of these actions or target types (scenarios.ts). A call that this version
 * does not know has the action `update` and the target type `other`. If `values` contains this action or target type, unknown
 * calls must match, too. The condition then matches all calls except the known calls that do not fit.
 */
const hasWord = (sql: Sql, word: 'action' | 'targetType', values: readonly string[]): Condition => {
  const fits = (call: string) => values.includes(scenarioOf(call)[word])
  return fits('')
    ? sql`action <> all(${auditedCalls.filter((call) => !fits(call))}::text[])`
    : sql`action = any(${auditedCalls.filter(fits)}::text[])`
}

const fieldIs = (sql: Sql, field: string, values: readonly string[]): Condition => {
  if (field === 'action' || field === 'targetType') return hasWord(sql, field, values)
  if (field === 'targetId') return sql`targets && ${values}::text[]`
  if (field === 'actorId') return sql`actor_id = any(${values}::text[])`
  if (field === 'actorEmail') return sql`actor_email = any(${values}::text[])`
  if (field === 'statusCode') return sql`coalesce(status, 0)::text = any(${values}::text[])`
  return sql`id::text = any(${values}::text[])`
}

/**
 * Returns the SQL conditions for the filters of a request, each with `and` before it. Throws 400 for an invalid time.
 */
export const conditionsOf = (sql: Sql, query: AuditQuery): Condition => {
  const listed = (name: `${string}[${string}]`): string[] | undefined => {
    const given = query[name]
    return given === undefined ? undefined : [given].flat().map(String)
  }
  const equal = [...filteredTexts, 'statusCode'].flatMap((field) => {
    const is = [listed(`${field}[eq]`), listed(`${field}[in]`)].filter((values) => values !== undefined)
    const isNot = [listed(`${field}[not]`), listed(`${field}[notIn]`)].filter((values) => values !== undefined)
    return [
      ...is.map((values) => fieldIs(sql, field, values)),
      ...isNot.map((values) => sql`not (${fieldIs(sql, field, values)})`),
    ]
  })
  const time = (name: 'from' | 'to' | `createdAt[${string}]`, sign: Condition): Condition[] =>
    query[name] === undefined ? [] : [sql`at ${sign} ${readTime(name, query[name])}`]
  const status = (name: `statusCode[${string}]`, sign: Condition): Condition[] =>
    query[name] === undefined ? [] : [sql`status ${sign} ${query[name] as number}`]
  const signs: Record<'gte' | 'lte' | 'gt' | 'lt', Condition> = { gte: sql`>=`, lte: sql`<=`, gt: sql`>`, lt: sql`<` }
  const compared = Object.entries(signs).flatMap(([name, sign]) => [
    ...time(`createdAt[${name}]`, sign),
    ...status(`statusCode[${name}]`, sign),
  ])
  return [...equal, ...time('from', signs.gte), ...time('to', signs.lte), ...compared].reduce<Condition>(
    (all, condition) => sql`${all} and ${condition}`,
    sql``,
  )
}
