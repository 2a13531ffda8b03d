// The log: one line of JSON per event on standard error, without waiting for the disk.
import { format, stripVTControlCharacters } from 'node:util'
import pino, { type Logger } from 'pino'
import { CauseBudget, causeOf } from './cause-budget.ts'
import { takeLine, traceIds } from './telemetry/telemetry.ts'

export type { Logger }

/** Longest text in a log line, in characters. Longer texts are cut. Stack traces are usually shorter. */
const mostText = 8192
const fatal = 60

/** Returns those fields of an error that may be logged. Other fields may contain anything, such as a hostile server's bytes. */
const plainError = (error: unknown): unknown => {
  if (!(error instanceof Error)) return error
  const fields = Object.entries(pino.stdSerializers.err(error))
  const plain = fields.filter(([, value]) => ['string', 'number', 'boolean'].includes(typeof value))
  return Object.fromEntries(
    plain.map(([name, value]) => [name, typeof value === 'string' ? value.slice(0, mostText) : value]),
  )
}

/**
 * Makes the log of a program. Every line has the ids of the current trace. Authorization headers are masked. `budget`:
 * limits lines of one kind, except fatal ones.
 */
export const createLog = (
  program: string,
  level = process.env['ALCOVE_LOG_LEVEL'] ?? 'info',
  destination: { write: (line: string) => void } = pino.destination({ dest: 2, sync: true }),
  budget = new CauseBudget(),
): Logger =>
  pino(
    {
      base: { program },
      level,
      mixin: traceIds,
      hooks: {
        logMethod(args, write, severity) {
          const tell = (suppressed: number, cause: string) =>
            write.call(this, { suppressed }, `suppressed ${suppressed} lines of this cause: ${cause}`)
          if (severity >= fatal || budget.take(causeOf(args), tell)) write.apply(this, args)
        },
      },
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

/** Returns a log that writes nothing, for tests. */
export const silentLog = (): Logger => pino({ level: 'silent' })

/** Writes to the log what Node and libraries would print as plain text. Only the programs in `bin` call this. */
export const logWholeProcess = (log: Logger): void => {
  process.removeAllListeners('warning')
  process.on('warning', (err) => log.warn({ err }, 'Node warns'))
  process.on('uncaughtException', (err) => {
    log.fatal({ err }, 'ended by an error that nothing caught')
    process.exit(1)
  })
  const told =
    (level: 'debug' | 'info' | 'warn' | 'error') =>
    (...words: unknown[]) => {
      const [first] = words
      if (first instanceof Error) log[level]({ err: first }, first.message)
      else log[level]({ from: 'console' }, stripVTControlCharacters(format(...words)).slice(0, mostText))
    }
  const debug = told('debug')
  Object.assign(console, {
    log: debug,
    debug,
    trace: debug,
    info: told('info'),
    warn: told('warn'),
    error: told('error'),
  })
}
