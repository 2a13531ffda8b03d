// The schemas of `/audit`: the fields of the public API, and some fields of our own.
import Type, { type Static } from 'typebox'
import { DateTime, PathText } from '#src/http/shapes.ts'

const Id = Type.String({ maxLength: 255 })
const Status = Type.Integer({ minimum: 0, maximum: 999 })
/** A status code in a filter such as `statusCode[in]`. Lists in a query are not converted to numbers. */
const StatusText = Type.String({ maxLength: 3, pattern: '^\\d{1,3}$', description: 'a status code' })

/**
 * Returns the schemas of the query parameters that filter audit rows by one field. A filter may list at most 100
 * values.
 */
const filtersOf = (name: string, shape: typeof Id | typeof Status, inList: typeof Id = Id) => ({
  [`${name}[eq]`]: Type.Optional(shape),
  [`${name}[not]`]: Type.Optional(shape),
  [`${name}[in]`]: Type.Optional(Type.Array(inList, { maxItems: 100 })),
  [`${name}[notIn]`]: Type.Optional(Type.Array(inList, { maxItems: 100 })),
})

/** The text fields of an audit row by which a request can filter. */
export const filteredTexts = ['id', 'actorId', 'actorEmail', 'action', 'targetType', 'targetId'] as const

const bounds = {
  'createdAt[gte]': Type.Optional(DateTime),
  'createdAt[lte]': Type.Optional(DateTime),
  'createdAt[gt]': Type.Optional(DateTime),
  'createdAt[lt]': Type.Optional(DateTime),
  'statusCode[gte]': Type.Optional(Status),
  'statusCode[lte]': Type.Optional(Status),
  'statusCode[gt]': Type.Optional(Status),
  'statusCode[lt]': Type.Optional(Status),
}

const pages = {
  page: Type.Integer({ minimum: 1, maximum: 1_000_000, default: 1 }),
  limit: Type.Integer({ minimum: 1, maximum: 200, default: 100 }),
  nextToken: Type.Optional(
    Type.String({
      maxLength: 2048,
      description: 'The `nextToken` of the previous answer. If present, `page` is ignored.',
    }),
  ),
  from: Type.Optional(DateTime),
  to: Type.Optional(DateTime),
}

const filters = Object.assign(
  {},
  ...filteredTexts.map((name) => filtersOf(name, Id)),
  filtersOf('statusCode', Status, StatusText),
)

const AuditFilters = Type.Object({ ...pages, ...bounds })
export const AuditQuery = Type.Object({ ...pages, ...bounds, ...filters }) as typeof AuditFilters
/** The `Record` type allows code to read filters such as `action[eq]` by a computed name. */
export type AuditQuery = Static<typeof AuditFilters> & Readonly<Record<`${string}[${string}]`, unknown>>

const ofOrganization = { organizationId: Type.Optional(Id) }
const ServerAuditFilters = Type.Object({ ...AuditFilters.properties, ...ofOrganization })
export const ServerAuditQuery = Type.Object({
  ...AuditQuery.properties,
  ...ofOrganization,
}) as typeof ServerAuditFilters

export const AuditEntry = Type.Object({
  id: Type.String(),
  createdAt: DateTime,
  organizationId: Type.Optional(
    Type.String({
      description: 'The organization of the call. Absent if the call had none, or if the caller did not belong to it.',
    }),
  ),
  actorId: Type.String(),
  actorEmail: Type.String(),
  credential: Type.Enum(['api_key', 'jwt', 'portal', 'sso', 'link'], {
    description: 'How the caller was authenticated (Alcove only).',
  }),
  keyName: Type.Optional(
    Type.String({ description: 'The name of the caller’s API key. Absent if the caller used none (Alcove only).' }),
  ),
  ipAddress: Type.String(),
  userAgent: Type.String(),
  requestId: Type.String({ description: 'The header `X-Request-Id` of the answer (Alcove only).' }),
  call: Type.String({
    description: 'The method and path, such as `POST /sandbox/{sandboxIdOrName}/stop` (Alcove only).',
  }),
  action: Type.String(),
  targetType: Type.String(),
  targetId: Type.Optional(Type.String()),
  targets: Type.Array(Type.String(), {
    description:
      'The ids and names of the objects that the call was about, from its path and its answer (Alcove only).',
  }),
  params: Type.Record(Type.String(), Type.String(), {
    description: 'The parameters in the path, without secrets (Alcove only).',
  }),
  statusCode: Type.Optional(
    Type.Integer({
      description:
        'The status code of the answer. Absent if the call is still running, or if the server was killed during it.',
    }),
  ),
  code: Type.Optional(Type.String({ description: 'The error code. Absent if the call did not fail (Alcove only).' })),
  errorMessage: Type.Optional(Type.String({ description: 'What the error code means.' })),
})
export type AuditEntry = Static<typeof AuditEntry>

export const AuditPage = Type.Object({
  items: Type.Array(AuditEntry),
  total: Type.Integer(),
  page: Type.Integer(),
  totalPages: Type.Integer(),
  nextToken: Type.Optional(Type.String()),
})
export type AuditPage = Static<typeof AuditPage>

export const AuditScenarios = Type.Object({
  targets: Type.Array(Type.Object({ targetType: Type.String(), actions: Type.Array(Type.String()) })),
})

export const OrganizationId = Type.Object({ organizationId: PathText })
