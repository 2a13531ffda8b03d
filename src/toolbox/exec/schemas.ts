import Type from 'typebox'
import { LongText, optional, textMap } from '#src/http/shapes.ts'

/** Timeout in seconds. 0: no timeout. */
export const TimeoutSeconds = optional(Type.Number({ minimum: 0 }))
export const Environment = optional(textMap({ names: 65_536, values: 1024 * 1024, most: 1000 }))

export const ExecuteRequest = Type.Object({
  command: LongText,
  cwd: optional(Type.String({ maxLength: 16_384 })),
  timeout: TimeoutSeconds,
  envs: Environment,
})
export type ExecuteRequest = Type.Static<typeof ExecuteRequest>

/** Set if the kernel killed a process of the sandbox for lack of memory during the command. */
export const outOfMemory = { oom: Type.Optional(Type.Literal(true)) }

export const ExecuteResponse = Type.Object({ exitCode: Type.Integer(), result: Type.String(), ...outOfMemory })
export type ExecuteResponse = Type.Static<typeof ExecuteResponse>
