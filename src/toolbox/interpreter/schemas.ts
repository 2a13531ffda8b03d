import Type from 'typebox'
import { DateTime, longestText, optional, PathText } from '#src/http/shapes.ts'
import { Environment } from '../exec/schemas.ts'

export const CreateContextRequest = Type.Object({
  cwd: optional(Type.String({ maxLength: 1024 })),
  language: optional(Type.Enum(['python'])),
})
export type CreateContextRequest = Type.Static<typeof CreateContextRequest>

export const InterpreterContext = Type.Object({
  id: Type.String(),
  cwd: Type.String(),
  createdAt: DateTime,
  /** Whether the context's Python runs. If not, the next execution restarts it, without its old variables. */
  active: Type.Boolean(),
  language: Type.Enum(['python']),
})
export type InterpreterContext = Type.Static<typeof InterpreterContext>

export const ContextList = Type.Object({ contexts: Type.Array(InterpreterContext) })
export const ContextParams = Type.Object({ contextId: PathText })
export const Message = Type.Object({ message: Type.String() })

/** Schema of the first message on the socket. `timeout` is in seconds; 0: no timeout. */
export const ExecuteRequest = Type.Object({
  code: Type.String({ minLength: 1, maxLength: longestText }),
  contextId: optional(PathText),
  timeout: optional(Type.Number({ minimum: 0 })),
  envs: Environment,
})
export type ExecuteRequest = Type.Static<typeof ExecuteRequest>
