/** Settings of OpenTelemetry. Settings that differ only by the signal share a row; `*` stands for the signal. */
export const telemetryMeanings: Record<string, string> = {
  OTEL_SDK_DISABLED: 'true: nothing is sent',
  'OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_*_ENDPOINT':
    'where all signals go (below it /v1/traces, /v1/metrics, /v1/logs), or one (as it stands); nothing is sent unless told',
  'OTEL_*_EXPORTER': 'otlp or none, for TRACES, METRICS and LOGS; otlp where there is an endpoint',
  'OTEL_EXPORTER_OTLP_PROTOCOL, OTEL_EXPORTER_OTLP_*_PROTOCOL':
    'http/protobuf or http/json; http/protobuf unless told. There is no grpc',
  'OTEL_EXPORTER_OTLP_HEADERS, OTEL_EXPORTER_OTLP_*_HEADERS': 'sent along, as name=value with commas between',
  'OTEL_EXPORTER_OTLP_TIMEOUT, OTEL_EXPORTER_OTLP_*_TIMEOUT': 'of one export, milliseconds; 10000 unless told',
  'OTEL_EXPORTER_OTLP_COMPRESSION, OTEL_EXPORTER_OTLP_*_COMPRESSION': 'gzip or none; none unless told',
  'OTEL_EXPORTER_OTLP_CERTIFICATE, OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE, OTEL_EXPORTER_OTLP_CLIENT_KEY':
    'files for TLS, which control and gate must be able to read; also for one signal',
  OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE:
    'cumulative, delta or lowmemory; cumulative unless told, and always for what /metrics says',
  OTEL_SERVICE_NAME:
    'alcove-control, alcove-gate, alcove-runner unless told; `up` puts the program behind what is told',
  OTEL_RESOURCE_ATTRIBUTES: 'told of every program, as name=value with commas between',
  OTEL_TRACES_SAMPLER:
    'always_on, always_off, traceidratio, or one of them with parentbased_ in front; parentbased_always_on unless told',
  OTEL_TRACES_SAMPLER_ARG: 'of traceidratio: the share of traces that are sent, 0 to 1',
  OTEL_PROPAGATORS: 'tracecontext carries the traces of callers on, none does not; tracecontext unless told',
  'OTEL_BSP_SCHEDULE_DELAY, OTEL_BSP_EXPORT_TIMEOUT, OTEL_BSP_MAX_QUEUE_SIZE, OTEL_BSP_MAX_EXPORT_BATCH_SIZE':
    'of spans: 5000 ms, 30000 ms, 2048, 512 unless told',
  'OTEL_BLRP_SCHEDULE_DELAY, OTEL_BLRP_EXPORT_TIMEOUT, OTEL_BLRP_MAX_QUEUE_SIZE, OTEL_BLRP_MAX_EXPORT_BATCH_SIZE':
    'of log lines: 1000 ms, 30000 ms, 2048, 512 unless told',
  'OTEL_METRIC_EXPORT_INTERVAL, OTEL_METRIC_EXPORT_TIMEOUT': '60000 ms, 30000 ms unless told',
  OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT: 'characters; 4096 unless told',
}
