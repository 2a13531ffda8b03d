// Reads the audit log: newest first, page by page.
import { Problem, problems } from '#src/problems.ts'
import { readCursor, writeCursor } from '../cursor.ts'
import type { Parts } from '../parts.ts'
import { scenarioOf } from './scenarios.ts'
import type { AuditEntry, AuditPage, AuditQuery } from './schemas.ts'
import { countEntries, type EntryRow, listEntries } from './store.ts'
import type { Trail } from './trail.ts'

export type AuditParts = Pick<Parts, 'database'> & { trail: Pick<Trail, 'settled'> }

/** Returns the error message: the sentence of the first problem in src/problems.ts with this status and code, or else the code. */
const meaningOf = (status: number | null, code: string): string =>
  Object.values(problems).find(([itsStatus, itsCode]) => itsStatus === status && itsCode === code)?.[2] ?? code

const asEntry = (row: EntryRow): AuditEntry => ({
  id: String(row.id),
  createdAt: row.at.toISOString(),
  ...(row.organization_id === null ? {} : { organizationId: row.organization_id }),
  actorId: row.actor_id,
  actorEmail: row.actor_email,
  credential: row.credential as AuditEntry['credential'],
  ...(row.key_name === null ? {} : { keyName: row.key_name }),
  ipAddress: row.client_address,
  userAgent: row.user_agent,
  requestId: row.request_id,
  call: row.action,
  ...scenarioOf(row.action),
  ...(row.targets[0] === undefined ? {} : { targetId: row.targets[0] }),
  targets: row.targets,
  params: row.params,
  ...(row.status === null ? {} : { statusCode: row.status }),
  ...(row.code === null ? {} : { code: row.code, errorMessage: meaningOf(row.status, row.code) }),
})

const order = { sort: 'audit', order: 'desc', valueIs: 'time' } as const

const readAfter = (token: string) => {
  const { value, id } = readCursor(token, order)
  if (!/^\d{1,15}$/.test(id))
    throw new Problem('bad_request', 'query.nextToken must be a nextToken from an answer of this endpoint')
  return { at: value as string, id: Number(id) }
}

/** Lists the audit rows of an organization, or of the whole server if `organizationId` is undefined. */
export const listAudit = async (
  { database: { sql }, trail }: AuditParts,
  organizationId: string | undefined,
  query: AuditQuery,
): Promise<AuditPage> => {
  const { page, limit, nextToken } = query
  const after = nextToken === undefined ? undefined : readAfter(nextToken)
  // Waits until the audit row of every answered call contains the outcome of the call.
  await trail.settled()
  const filter = { organizationId, query }
  const total = await countEntries(sql, filter)
  const skipped = after === undefined ? (page - 1) * limit : 0
  const rows = skipped >= total ? [] : await listEntries(sql, { ...filter, after, skipped }, limit + 1)
  const items = rows.slice(0, limit)
  const last = rows.length > limit ? items.at(-1) : undefined
  const next = last && { sort: order.sort, order: order.order, value: last.at.toISOString(), id: String(last.id) }
  return {
    items: items.map(asEntry),
    total,
    page,
    totalPages: Math.ceil(total / limit),
    ...(next === undefined ? {} : { nextToken: writeCursor(next) }),
  }
}
