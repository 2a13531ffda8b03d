// Turns log lines into log records of OpenTelemetry. A record is made when its line is written, in the current trace.
import { type Logger, SeverityNumber } from '@opentelemetry/api-logs'

const severities: Record<number, readonly [SeverityNumber, string]> = {
  10: [SeverityNumber.TRACE, 'trace'],
  20: [SeverityNumber.DEBUG, 'debug'],
  30: [SeverityNumber.INFO, 'info'],
  40: [SeverityNumber.WARN, 'warn'],
  50: [SeverityNumber.ERROR, 'error'],
  60: [SeverityNumber.FATAL, 'fatal'],
}

/** Fields that do not become attributes: the record has fields of its own for them, or they are equal in all lines of a program. */
const elsewhere = new Set(['level', 'time', 'msg', 'err', 'program', 'trace_id', 'span_id', 'pid', 'hostname'])

type Line = Record<string, unknown> & {
  isPrivate?: unknown
  err?: { type?: unknown; message?: unknown; stack?: unknown }
}

const asLine = (text: string): Line | undefined => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const attributeOf = (value: unknown): string | number | boolean =>
  typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' ? value : JSON.stringify(value)

/** Returns the known fields of an error. Its other fields may contain data of users, such as a row that a database refused. */
const exceptionOf = ({ err }: Line): Record<string, string> => {
  if (err === undefined || err === null) return {}
  const told = [
    ['exception.type', err.type],
    ['exception.message', err.message],
    ['exception.stacktrace', err.stack],
  ] as const
  return Object.fromEntries(told.flatMap(([name, value]) => (typeof value === 'string' ? [[name, value]] : [])))
}

/**
 * Returns a function that passes log lines to OpenTelemetry, without lines that have `isPrivate`, which must stay on this machine.
 */
export const takeLinesInto =
  (logger: Logger) =>
  (text: string): void => {
    const line = asLine(text)
    if (line === undefined || line.isPrivate === true) return
    const [severityNumber, severityText] = severities[Number(line['level'])] ?? [SeverityNumber.UNSPECIFIED, '']
    const more = Object.entries(line).filter(([name, value]) => !elsewhere.has(name) && value !== undefined)
    logger.emit({
      timestamp: Number(line['time']),
      severityNumber,
      severityText,
      body: String(line['msg'] ?? ''),
      attributes: {
        ...Object.fromEntries(more.map(([name, value]) => [name, attributeOf(value)])),
        ...exceptionOf(line),
      },
    })
  }
