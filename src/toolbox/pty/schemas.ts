import Type from 'typebox'
import { DateTime, optional, PathText } from '#src/http/shapes.ts'
import { Environment } from '../exec/schemas.ts'

const Dimension = Type.Integer({ minimum: 1, maximum: 1000 })

/** Schema of the id of a terminal. It must be usable as one segment of a URL's path. */
const Id = Type.String({
  minLength: 1,
  maxLength: 255,
  pattern: '^[^/\\u0000-\\u001f\\u007f]+$',
  description: 'one line without a slash',
})

const Directory = Type.String({ maxLength: 1024 })

export const CreatePtyRequest = Type.Object({
  id: Id,
  cwd: optional(Directory),
  cols: optional(Dimension),
  rows: optional(Dimension),
  envs: Environment,
  lazyStart: optional(Type.Boolean()),
})
export type CreatePtyRequest = Type.Static<typeof CreatePtyRequest>

/** The query of `create-connect`. Variables come as a subprotocol instead (subprotocols.ts). */
export const CreateConnectQuery = Type.Object({
  id: Id,
  cwd: Type.Optional(Directory),
  cols: Type.Optional(Dimension),
  rows: Type.Optional(Dimension),
})
export type CreateConnectQuery = Type.Static<typeof CreateConnectQuery>

export const ResizeRequest = Type.Object({ cols: Dimension, rows: Dimension })
export type ResizeRequest = Type.Static<typeof ResizeRequest>

/** Schema of the path parameters. Any text is allowed: an id that cannot exist is 404, not 400. */
export const PtyParams = Type.Object({ sessionId: PathText })

export const PtyInfo = Type.Object({
  id: Type.String(),
  /** Whether the shell of the terminal runs. False while a terminal with `lazyStart` waits for its first client. */
  active: Type.Boolean(),
  lazyStart: Type.Boolean(),
  createdAt: DateTime,
  cwd: Type.String(),
  cols: Type.Integer(),
  rows: Type.Integer(),
  /** The variables of the request, as far as they fit into the stored record. */
  envs: Type.Record(Type.String(), Type.String()),
})
export type PtyInfo = Type.Static<typeof PtyInfo>

export const CreatedPty = Type.Object({ ...PtyInfo.properties, sessionId: Type.String() })
export const PtyList = Type.Object({ sessions: Type.Array(PtyInfo) })
export const Message = Type.Object({ message: Type.String() })
