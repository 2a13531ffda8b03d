// The request and reply schemas of `/webhooks`. Daytona's API has no calls for endpoints and attempts.
import Type, { type Static } from 'typebox'
import { DateTime, orNull, PathText } from '#src/http/shapes.ts'
import { webhookEvents } from './event.ts'

export const OrganizationId = Type.Object({ organizationId: PathText })
export const EndpointId = Type.Object({ organizationId: PathText, endpointId: PathText })
export const MessageId = Type.Object({
  organizationId: PathText,
  endpointId: PathText,
  messageId: PathText,
})

export const PortalAccess = Type.Object({ token: Type.String(), url: Type.String() })

export const InitializationStatus = Type.Object({
  organizationId: Type.String(),
  webhookProviderApplicationId: orNull(Type.String()),
  svixApplicationId: orNull(Type.String()),
  lastError: orNull(Type.String()),
  retryCount: Type.Integer(),
  createdAt: DateTime,
  updatedAt: DateTime,
})

const Url = Type.String({ minLength: 1, maxLength: 2048 })
const Description = Type.String({ maxLength: 255 })
/** The kinds of events that an endpoint gets. Empty: all kinds. */
const Events = Type.Array(Type.Enum([...webhookEvents]), { maxItems: 50 })

export const CreateEndpoint = Type.Object({
  url: Url,
  description: Type.Optional(Description),
  events: Type.Optional(Events),
})
export type CreateEndpoint = Static<typeof CreateEndpoint>

export const ChangeEndpoint = Type.Object({
  url: Type.Optional(Url),
  description: Type.Optional(Description),
  events: Type.Optional(Events),
  disabled: Type.Optional(Type.Boolean()),
})
export type ChangeEndpoint = Static<typeof ChangeEndpoint>

export const Endpoint = Type.Object({
  id: Type.String(),
  url: Type.String(),
  description: Type.String(),
  events: Type.Array(Type.Enum([...webhookEvents])),
  disabled: Type.Boolean(),
  disabledReason: orNull(Type.String()),
  failingSince: orNull(DateTime),
  createdAt: DateTime,
  updatedAt: DateTime,
})

export const EndpointWithSecret = Type.Object({ ...Endpoint.properties, secret: Type.String() })

export const EndpointSecret = Type.Object({ secret: Type.String() })

export const AttemptsQuery = Type.Object({
  cursor: Type.Optional(Type.String({ pattern: '^\\d{1,15}$', maxLength: 15 })),
  limit: Type.Integer({ minimum: 1, maximum: 200, default: 50 }),
})

export const AttemptPage = Type.Object({
  items: Type.Array(
    Type.Object({
      messageId: Type.String(),
      event: Type.Enum([...webhookEvents]),
      number: Type.Integer(),
      at: DateTime,
      durationMilliseconds: Type.Integer(),
      status: orNull(Type.Integer()),
      error: orNull(Type.String()),
      delivered: Type.Boolean(),
    }),
  ),
  nextCursor: orNull(Type.String()),
})
