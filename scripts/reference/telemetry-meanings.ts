/** Meanings of the OpenTelemetry settings. In a name, `*` stands for TRACES, METRICS or LOGS. */
export const telemetryMeanings: Record<string, string> = {
  OTEL_SDK_DISABLED: 'true: the programs send no traces, metrics or logs. Default: false.',
  'OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_*_ENDPOINT':
    'The first is the base URL of the receiver; /v1/traces, /v1/metrics or /v1/logs is added to it. The others, with TRACES, METRICS or LOGS for *, are complete URLs. Default: nothing is sent.',
  'OTEL_*_EXPORTER':
    'otlp or none, for each of TRACES, METRICS and LOGS. none: this kind is not sent. Default: otlp if an endpoint is set.',
  'OTEL_EXPORTER_OTLP_PROTOCOL, OTEL_EXPORTER_OTLP_*_PROTOCOL':
    'Protocol in which telemetry is sent: http/protobuf or http/json. The names with TRACES, METRICS or LOGS apply to one kind of telemetry. Default: http/protobuf. grpc is not supported.',
  'OTEL_EXPORTER_OTLP_HEADERS, OTEL_EXPORTER_OTLP_*_HEADERS':
    'HTTP headers that are sent with each export, as name=value separated by commas. Default: none.',
  'OTEL_EXPORTER_OTLP_TIMEOUT, OTEL_EXPORTER_OTLP_*_TIMEOUT': 'Timeout of one export in milliseconds. Default: 10000.',
  'OTEL_EXPORTER_OTLP_COMPRESSION, OTEL_EXPORTER_OTLP_*_COMPRESSION':
    'Compression of exports: gzip or none. Default: none.',
  'OTEL_EXPORTER_OTLP_CERTIFICATE, OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE, OTEL_EXPORTER_OTLP_CLIENT_KEY':
    'Paths of PEM files for TLS. They are: the certificates to trust, the certificate of the sender, and its key. With TRACES_, METRICS_ or LOGS_ after OTLP_, a name applies to one kind of telemetry. The Unix users of control and gate must be able to read the files.',
  OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE:
    'With cumulative, counters are exported as totals since the start. With delta, they are changes since the last export. With lowmemory, each kind of counter is exported in the way that needs less memory. Default: cumulative. The endpoint /metrics always has totals.',
  OTEL_SERVICE_NAME:
    'Service name in telemetry. `up` appends the name of the program to it. Default: alcove-control, alcove-gate, alcove-runner and alcove-ssh-gateway.',
  OTEL_RESOURCE_ATTRIBUTES:
    'Attributes that every program adds to its telemetry, as name=value separated by commas. Default: none.',
  OTEL_TRACES_SAMPLER:
    'Which traces are sent: always_on (all), always_off (none) or traceidratio (a fraction). With parentbased_ before one of these names, the decision of the caller has priority. Default: parentbased_always_on.',
  OTEL_TRACES_SAMPLER_ARG:
    'Fraction of the traces that are sent (0-1), if OTEL_TRACES_SAMPLER is traceidratio or parentbased_traceidratio. Default: 1.',
  OTEL_PROPAGATORS:
    'tracecontext: calls continue the trace of the caller. none: each call begins a new trace. Default: tracecontext.',
  'OTEL_BSP_SCHEDULE_DELAY, OTEL_BSP_EXPORT_TIMEOUT, OTEL_BSP_MAX_QUEUE_SIZE, OTEL_BSP_MAX_EXPORT_BATCH_SIZE':
    'Delay, timeout, queue size and batch size for the export of spans. Defaults: 5000 ms, 30000 ms, 2048, 512.',
  'OTEL_BLRP_SCHEDULE_DELAY, OTEL_BLRP_EXPORT_TIMEOUT, OTEL_BLRP_MAX_QUEUE_SIZE, OTEL_BLRP_MAX_EXPORT_BATCH_SIZE':
    'Delay, timeout, queue size and batch size for the export of log lines. Defaults: 1000 ms, 30000 ms, 2048, 512.',
  'OTEL_METRIC_EXPORT_INTERVAL, OTEL_METRIC_EXPORT_TIMEOUT':
    'Interval and timeout for the export of metrics. Defaults: 60000 ms, 30000 ms.',
  OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT:
    'Maximum length of an attribute value in characters. Longer values are cut. Default: 4096.',
}
