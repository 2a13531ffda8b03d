// One line of JSON per event, on standard error, written without waiting for the disk.
import pino, { type Logger } from 'pino'
import { takeLine, traceIds } from './telemetry/telemetry.ts'

export type { Logger }

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
    { base: { program }, level, mixin: traceIds, redact: ['req.headers.authorization', 'headers.authorization'] },
    {
      write: (line: string) => {
        destination.write(line)
        takeLine(line)
      },
    },
  )

/** A log that says nothing, for tests. */
export const silentLog = (): Logger => pino({ level: 'silent' })
