// A line of JSON per event, on standard error, written without waiting for the disk.
import { format, stripVTControlCharacters } from 'node:util'
import pino, { type Logger } from 'pino'
import { CauseBudget, causeOf } from './cause-budget.ts'
import { takeLine, traceIds } from './telemetry/telemetry.ts'

export type { Logger }

/** Longer ones are cut off; a stack is shorter. */
const mostText = 8192
const fatal = 60

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
 * line. `destination` takes the lines instead of standard error. Each cause has its `budget` of lines; what is fatal always passes.
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

/** A log that says nothing, for tests. */
export const silentLog = (): Logger => pino({ level: 'silent' })

/**
 * What Node and libraries would print as plain text becomes lines of the log: warnings of the process, the console, and the
 * error that ends it. Only a program's first file calls this.
 */
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
