import Type from 'typebox'
import { LongText, optional, PathText } from '#src/http/shapes.ts'
import { outOfMemory } from '../exec/schemas.ts'

/** Schema of the id of a session. It must be usable as one segment of a URL's path. */
const Id = Type.String({
  minLength: 1,
  maxLength: 255,
  pattern: '^[^/\\u0000-\\u001f\\u007f]+$',
  description: 'one line without a slash',
})

export const CreateSessionRequest = Type.Object({ sessionId: Id })

/** Schema of the path parameters. Any text is allowed: an id that cannot exist is 404, not 400. */
export const SessionParams = Type.Object({ sessionId: PathText })
export const CommandParams = Type.Object({ sessionId: PathText, commandId: PathText })
export type CommandParams = Type.Static<typeof CommandParams>

export const Command = Type.Object({
  id: Type.String(),
  /** The command text; in lists at most its first 4 KiB. */
  command: Type.String(),
  /** Exit code, set once the command has ended: 128 + N for signal N, -1 if the command never ran. */
  exitCode: Type.Optional(Type.Integer()),
  ...outOfMemory,
})
export type Command = Type.Static<typeof Command>

export const Session = Type.Object({ sessionId: Type.String(), commands: Type.Array(Command) })
export type Session = Type.Static<typeof Session>
export const SessionList = Type.Array(Session)

export const ExecRequest = Type.Object({
  command: LongText,
  runAsync: optional(Type.Boolean()),
  /** Older name of the field `runAsync`. */
  async: optional(Type.Boolean()),
  suppressInputEcho: optional(Type.Boolean()),
})
export type ExecRequest = Type.Static<typeof ExecRequest>

const logs = {
  /** Output of both streams in order of arrival. */
  output: Type.String(),
  stdout: Type.String(),
  stderr: Type.String(),
  /** Set if output is missing. Lines in `output`, `stdout` and `stderr` say how many bytes, and where. */
  truncated: Type.Optional(Type.Literal(true)),
  ...outOfMemory,
}
export const Logs = Type.Object(logs)
export type Logs = Type.Static<typeof Logs>
export const ExecResult = Type.Object({ cmdId: Type.String(), exitCode: Type.Integer(), ...logs })
export type ExecResult = Type.Static<typeof ExecResult>
export const ExecAccepted = Type.Object({ cmdId: Type.String() })

export const LogsQuery = Type.Object({ follow: Type.Optional(Type.Boolean()) })
export const InputRequest = Type.Object({ data: LongText })
