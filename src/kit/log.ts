// One line of JSON per event, on standard error, written without waiting for the disk.
import pino, { type Logger } from 'pino'
import { takeLine, traceIds } from './telemetry/telemetry.ts'

export type { Logger }

/** Longer ones are cut off; a stack is shorter. */
const mostText = 8192

/**
 * An error goes into the log with what says it. What else hangs on it may be anything, such as all bytes that a hostile server
 * had sent when its answer could not be read.
 */
const plainError = (error: unknown): unknown => {
  if (!(error instanceof Error)) return error
  const fields = Object.entries(pino.stdSerializers.err(error))
  const plain = fields.filter(([, value]) => ['string', 'number', 'boolean'].includes(typeof value))
  return Object.fromEntries(
    plain.map(([name, value]) => [name, typeof value === 'string' ? value.slice(0, mostText) : value]),
  )
}

/**
 * `level` is a pino level name; `program` stands on every line, and the trace that is under way. Credentials never reach a
 * line. `destination` takes the lines instead of standard error.
 */
export const createLog = (
  program: string,
  level = process.env['ALCOVE_LOG_LEVEL'] ?? 'info',
  destination: { write: (line: string) => void } = pino.destination({ dest: 2, sync: true }),
): Logger =>
  pino(
    {
      base: { program },
      level,
      mixin: traceIds,
      redact: ['req.headers.authorization', 'headers.authorization'],
      serializers: { err: plainError, error: plainError, cause: plainError },
    },
    {
      write: (line: string) => {
        destination.write(line)
        takeLine(line)
      },
    },
  )

/** A log that says nothing, for tests. */
export const silentLog = (): Logger => pino({ level: 'silent' })
