// One line of JSON per event, on standard error, written without waiting for the disk.
import pino, { type Logger } from 'pino'

export type { Logger }

/** `level` is a pino level name; `program` stands on every line. Credentials never reach a line. */
export const createLog = (program: string, level = process.env['ALCOVE_LOG_LEVEL'] ?? 'info'): Logger =>
  pino(
    { base: { program }, level, redact: ['req.headers.authorization', 'headers.authorization'] },
    pino.destination({ dest: 2, sync: true }),
  )

/** A log that says nothing, for tests. */
export const silentLog = (): Logger => pino({ level: 'silent' })
