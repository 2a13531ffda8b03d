import Type from 'typebox'
import { LongText, optional } from '#src/http/shapes.ts'
import { Environment, outOfMemory, TimeoutSeconds } from '../exec/schemas.ts'

export const languages = ['python', 'javascript', 'typescript'] as const
export type Language = (typeof languages)[number]

export const CodeRunRequest = Type.Object({
  code: LongText,
  language: optional(Type.Enum([...languages])),
  argv: optional(Type.Array(Type.String({ maxLength: 1024 * 1024 }), { maxItems: 4096 })),
  envs: Environment,
  timeout: TimeoutSeconds,
})
export type CodeRunRequest = Type.Static<typeof CodeRunRequest>

export const CodeRunResponse = Type.Object({
  exitCode: Type.Integer(),
  result: Type.String(),
  artifacts: Type.Optional(Type.Object({ charts: Type.Array(Type.Unknown()) })),
  ...outOfMemory,
})
export type CodeRunResponse = Type.Static<typeof CodeRunResponse>
