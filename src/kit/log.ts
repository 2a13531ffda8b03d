// One line of JSON per event, on standard error, written without waiting for the disk.
import pino, { type Logger } from 'pino'

export type { Logger }

/**
 * `level` is a pino level name; `program` stands on every line. Credentials never reach a line.
 * `destination` takes the lines instead of standard error.
 */
export const createLog = (
  program: string,
  level = process.env['ALCOVE_LOG_LEVEL'] ?? 'info',
  destination: { write: (line: string) => void } = pino.destination({ dest: 2, sync: true }),
): Logger =>
  pino({ base: { program }, level, redact: ['req.headers.authorization', 'headers.authorization'] }, destination)

/** A log that says nothing, for tests. */
export const silentLog = (): Logger => pino({ level: 'silent' })
