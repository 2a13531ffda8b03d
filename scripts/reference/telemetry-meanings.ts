/**
 * What the settings of OpenTelemetry mean. Settings whose names differ only in the kind of telemetry have one row, in
 * which `*` stands for that kind.
 */
export const telemetryMeanings: Record<string, string> = {
  OTEL_SDK_DISABLED: 'If true, no traces, metrics and logs are sent to any receiver of telemetry. Default: false.',
  'OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_*_ENDPOINT':
    'URL of the receiver of all signals, to which /v1/traces, /v1/metrics or /v1/logs is added. Or the complete URL for one signal. Default: nothing is sent.',
  'OTEL_*_EXPORTER': 'otlp or none, for each of TRACES, METRICS and LOGS. Default: otlp where there is an endpoint.',
  'OTEL_EXPORTER_OTLP_PROTOCOL, OTEL_EXPORTER_OTLP_*_PROTOCOL':
    'http/protobuf or http/json. Default: http/protobuf. grpc is not offered.',
  'OTEL_EXPORTER_OTLP_HEADERS, OTEL_EXPORTER_OTLP_*_HEADERS':
    'Headers of each export, as name=value separated by commas. Default: none.',
  'OTEL_EXPORTER_OTLP_TIMEOUT, OTEL_EXPORTER_OTLP_*_TIMEOUT': 'Limit of one export in milliseconds. Default: 10000.',
  'OTEL_EXPORTER_OTLP_COMPRESSION, OTEL_EXPORTER_OTLP_*_COMPRESSION': 'gzip or none. Default: none.',
  'OTEL_EXPORTER_OTLP_CERTIFICATE, OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE, OTEL_EXPORTER_OTLP_CLIENT_KEY':
    'Files for TLS; each variable also exists for one signal. The users of control and gate must be able to read the files.',
  OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE:
    'cumulative, delta or lowmemory. Default: cumulative. What /metrics shows is always cumulative.',
  OTEL_SERVICE_NAME:
    'Name of the service; `up` adds the name of the program. Default: alcove-control, alcove-gate, alcove-runner and alcove-ssh-gateway.',
  OTEL_RESOURCE_ATTRIBUTES: 'Attributes of every program, as name=value separated by commas. Default: none.',
  OTEL_TRACES_SAMPLER:
    'always_on, always_off, traceidratio, or one of them with parentbased_ in front. Default: parentbased_always_on.',
  OTEL_TRACES_SAMPLER_ARG: 'Share of traces that traceidratio sends (0-1). Default: 1.',
  OTEL_PROPAGATORS: 'tracecontext: continue the traces of callers. none: begin new ones. Default: tracecontext.',
  'OTEL_BSP_SCHEDULE_DELAY, OTEL_BSP_EXPORT_TIMEOUT, OTEL_BSP_MAX_QUEUE_SIZE, OTEL_BSP_MAX_EXPORT_BATCH_SIZE':
    'Delay, timeout, queue size and batch size of exports of spans. Defaults: 5000 ms, 30000 ms, 2048, 512.',
  'OTEL_BLRP_SCHEDULE_DELAY, OTEL_BLRP_EXPORT_TIMEOUT, OTEL_BLRP_MAX_QUEUE_SIZE, OTEL_BLRP_MAX_EXPORT_BATCH_SIZE':
    'Delay, timeout, queue size and batch size of exports of log lines. Defaults: 1000 ms, 30000 ms, 2048, 512.',
  'OTEL_METRIC_EXPORT_INTERVAL, OTEL_METRIC_EXPORT_TIMEOUT':
    'Interval and timeout of exports of metrics. Defaults: 60000 ms, 30000 ms.',
  OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT: 'Longest value of an attribute, in characters. Default: 4096.',
}
