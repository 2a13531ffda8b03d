import Type from 'typebox'

/** Clients in other languages send `null` for what they leave out. */
const orNull = <T extends Type.TSchema>(schema: T) => Type.Optional(Type.Union([schema, Type.Null()]))

/** Seconds; 0 means none. */
export const TimeoutSeconds = orNull(Type.Number({ minimum: 0 }))
export const Environment = orNull(Type.Record(Type.String(), Type.String()))

export const ExecuteRequest = Type.Object({
  command: Type.String(),
  cwd: orNull(Type.String()),
  timeout: TimeoutSeconds,
  envs: Environment,
})
export type ExecuteRequest = Type.Static<typeof ExecuteRequest>

export const ExecuteResponse = Type.Object({ exitCode: Type.Integer(), result: Type.String() })
export type ExecuteResponse = Type.Static<typeof ExecuteResponse>
