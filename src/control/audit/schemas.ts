// The shapes of `/audit` (our own addition). Names follow the public clients where those have one.
import Type, { type Static } from 'typebox'
import { orNull, PathText } from '#src/http/shapes.ts'

const Id = Type.String({ maxLength: 255 })
const DateTime = Type.String({ format: 'date-time', maxLength: 64 })

const filters = {
  cursor: Type.Optional(Type.String({ maxLength: 2048 })),
  limit: Type.Integer({ minimum: 1, maximum: 200, default: 100 }),
  from: Type.Optional(DateTime),
  to: Type.Optional(DateTime),
  actor: Type.Optional(Id),
  action: Type.Optional(Id),
  target: Type.Optional(Id),
}

export const AuditQuery = Type.Object(filters)
export type AuditQuery = Static<typeof AuditQuery>

export const ServerAuditQuery = Type.Object({ ...filters, organizationId: Type.Optional(Id) })

export const AuditEntry = Type.Object({
  id: Type.String(),
  createdAt: DateTime,
  /** Absent: the call was in no organization, or in one that its actor did not belong to. */
  organizationId: Type.Optional(Type.String()),
  actorId: Type.String(),
  actorEmail: Type.String(),
  credential: Type.Enum(['api_key', 'jwt', 'portal', 'sso']),
  /** The name of the API key. */
  keyName: Type.Optional(Type.String()),
  ipAddress: Type.String(),
  userAgent: Type.String(),
  /** The `X-Request-Id` of the answer. */
  requestId: Type.String(),
  /** Method and path template: `POST /sandbox/{sandboxIdOrName}/stop`. */
  action: Type.String(),
  /** The parameters of the path. */
  params: Type.Record(Type.String(), Type.String()),
  /** Ids and names of the targets, including those in the answer. */
  targets: Type.Array(Type.String()),
  /** Absent: the call is still running, or the server was killed during it. */
  statusCode: Type.Optional(Type.Integer()),
  /** The problem code, if the call was refused. */
  code: Type.Optional(Type.String()),
})
export type AuditEntry = Static<typeof AuditEntry>

export const AuditPage = Type.Object({
  items: Type.Array(AuditEntry),
  nextCursor: orNull(Type.String()),
})

export const OrganizationId = Type.Object({ organizationId: PathText })
