// The request and reply schemas of `/warm-pools`. The schemas match the types of Daytona's client.
import Type, { type Static } from 'typebox'
import { DateTime, orNull, PathText } from '#src/http/shapes.ts'

export const mostWarm = 100

const Pool = Type.Integer({ minimum: 0, maximum: mostWarm })

export const WarmPool = Type.Object({
  id: Type.String(),
  organizationId: Type.String(),
  snapshot: Type.String(),
  target: Type.String(),
  pool: Type.Number(),
  currentSize: Type.Number(),
  cpu: Type.Number(),
  mem: Type.Number(),
  disk: Type.Number(),
  osUser: Type.String(),
  env: Type.Record(Type.String(), Type.String()),
  errorReason: orNull(Type.String()),
  createdAt: DateTime,
  updatedAt: DateTime,
})

export const CreateWarmPool = Type.Object({
  snapshot: Type.String({ minLength: 1, maxLength: 300 }),
  pool: Pool,
  target: Type.Optional(Type.String({ maxLength: 300 })),
})
export type CreateWarmPool = Static<typeof CreateWarmPool>

export const UpdateWarmPool = Type.Object({ pool: Pool })

export const WarmPoolId = Type.Object({ warmPoolId: PathText })
