// Sends telemetry over OTLP/HTTP. The exporters of OpenTelemetry read the standard variables for endpoints, headers,
// certificates, compression, timeouts and temporality.
import { type ExportResult, ExportResultCode } from '@opentelemetry/core'
import type { LogRecordExporter } from '@opentelemetry/sdk-logs'
import type { PushMetricExporter } from '@opentelemetry/sdk-metrics'
import type { SpanExporter } from '@opentelemetry/sdk-trace'
import type { Logger } from '#src/kit/log.ts'
import type { Signal, TelemetrySettings } from './settings.ts'

export type Exporters = { traces?: SpanExporter; metrics?: PushMetricExporter; logs?: LogRecordExporter }

type Sender = { export: (items: never, tell: (result: ExportResult) => void) => void }

/**
 * Logs when the receiver starts to refuse telemetry, and when the receiver accepts telemetry again. The receiver's message is left
 * out: it may repeat data that was sent.
 */
const watched = <S extends Sender>(sender: S, signal: Signal, log: Logger): S => {
  const send = sender.export.bind(sender)
  let isTaken = true
  const note = ({ code, error }: ExportResult) => {
    const isTakenNow = code === ExportResultCode.SUCCESS
    if (isTaken === isTakenNow) return
    isTaken = isTakenNow
    if (isTaken) log.info({ signal }, 'telemetry is sent again')
    else log.warn({ signal, why: reasonOf(error) }, 'telemetry cannot be sent; it is dropped until it can')
  }
  const sendAndNote: Sender['export'] = (items, tell) =>
    send(items, (result) => {
      note(result)
      tell(result)
    })
  return Object.assign(sender, { export: sendAndNote })
}

const reasonOf = (error: unknown): string => {
  const { code, name } = (error ?? {}) as { code?: unknown; name?: unknown }
  return String(code ?? name ?? 'it was not taken')
}

export const openExporters = async (send: TelemetrySettings['send'], log: Logger): Promise<Exporters> => {
  const exporters: Exporters = {}
  if (send.traces !== undefined) {
    const { OTLPTraceExporter } =
      send.traces === 'http/json'
        ? await import('@opentelemetry/exporter-trace-otlp-http')
        : await import('@opentelemetry/exporter-trace-otlp-proto')
    exporters.traces = watched(new OTLPTraceExporter(), 'traces', log)
  }
  if (send.metrics !== undefined) {
    const { OTLPMetricExporter } =
      send.metrics === 'http/json'
        ? await import('@opentelemetry/exporter-metrics-otlp-http')
        : await import('@opentelemetry/exporter-metrics-otlp-proto')
    exporters.metrics = watched(new OTLPMetricExporter(), 'metrics', log)
  }
  if (send.logs !== undefined) {
    const { OTLPLogExporter } =
      send.logs === 'http/json'
        ? await import('@opentelemetry/exporter-logs-otlp-http')
        : await import('@opentelemetry/exporter-logs-otlp-proto')
    exporters.logs = watched(new OTLPLogExporter(), 'logs', log)
  }
  return exporters
}
