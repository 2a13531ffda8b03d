import Type from 'typebox'
import { Environment, TimeoutSeconds } from '../exec/schemas.ts'

export const languages = ['python', 'javascript', 'typescript'] as const
export type Language = (typeof languages)[number]

export const CodeRunRequest = Type.Object({
  code: Type.String(),
  language: Type.Optional(Type.Union([Type.Enum([...languages]), Type.Null()])),
  argv: Type.Optional(Type.Union([Type.Array(Type.String()), Type.Null()])),
  envs: Environment,
  timeout: TimeoutSeconds,
})
export type CodeRunRequest = Type.Static<typeof CodeRunRequest>

export const CodeRunResponse = Type.Object({
  exitCode: Type.Integer(),
  result: Type.String(),
  artifacts: Type.Optional(Type.Object({ charts: Type.Array(Type.Unknown()) })),
})
export type CodeRunResponse = Type.Static<typeof CodeRunResponse>
