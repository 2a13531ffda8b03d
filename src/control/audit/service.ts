// Reads the audit log: newest first, page by page.
import { Problem } from '#src/problems.ts'
import { readCursor, writeCursor } from '../cursor.ts'
import type { Parts } from '../parts.ts'
import type { AuditEntry, AuditQuery } from './schemas.ts'
import { type EntryRow, listEntries } from './store.ts'
import type { Trail } from './trail.ts'

export type AuditParts = Pick<Parts, 'database'> & { trail: Pick<Trail, 'settled'> }

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
  action: row.action,
  params: row.params,
  targets: row.targets,
  ...(row.status === null ? {} : { statusCode: row.status }),
  ...(row.code === null ? {} : { code: row.code }),
})

const order = { sort: 'audit', order: 'desc', valueIs: 'time' } as const

const readAfter = (cursor: string) => {
  const { value, id } = readCursor(cursor, order)
  if (!/^\d{1,15}$/.test(id)) throw new Problem('bad_request', 'query.cursor is not one that was given out here')
  return { at: value as string, id: Number(id) }
}

/** Only years of four digits, because the database can store no others. */
const readTime = (name: string, text: string | undefined): Date | undefined => {
  if (text === undefined) return undefined
  const time = new Date(text)
  const year = time.getUTCFullYear()
  if (!(year >= 1 && year <= 9999)) throw new Problem('bad_request', `query.${name} is not a date`)
  return time
}

/** `organizationId` undefined: the rows of the whole server. */
export const listAudit = async (
  { database, trail }: AuditParts,
  organizationId: string | undefined,
  { cursor, limit, from, to, actor, action, target }: AuditQuery,
): Promise<{ items: AuditEntry[]; nextCursor: string | null }> => {
  const filter = {
    organizationId,
    from: readTime('from', from),
    to: readTime('to', to),
    actor,
    action,
    target,
    after: cursor === undefined ? undefined : readAfter(cursor),
  }
  // Waits until the outcome of every answered call is in the log.
  await trail.settled()
  const rows = await listEntries(database.sql, filter, limit + 1)
  const items = rows.slice(0, limit)
  const last = rows.length > limit ? items.at(-1) : undefined
  return {
    items: items.map(asEntry),
    nextCursor:
      last === undefined
        ? null
        : writeCursor({ sort: order.sort, order: order.order, value: last.at.toISOString(), id: String(last.id) }),
  }
}
