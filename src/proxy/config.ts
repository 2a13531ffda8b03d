import { readSettings } from '#src/kit/settings.ts'
import { readTelemetry, type TelemetrySettings } from '#src/kit/telemetry/settings.ts'

export type ProxyConfig = {
  listen: { host: string; port: number }
  controlUrl: URL
  proxyKey: string
  /** What clients call us: a name that is ours, whatever it looks like. */
  publicUrl: URL
  telemetry: TelemetrySettings
}

export const loadConfig = (environment = process.env): ProxyConfig =>
  readSettings(environment, ({ address, url, text }) => ({
    listen: address('ALCOVE_LISTEN', 'host:port that the proxy serves on'),
    controlUrl: url('ALCOVE_CONTROL_URL', 'where control serves, such as http://127.0.0.1:3000'),
    proxyKey: text('ALCOVE_PROXY_KEY', "the proxy's own key for control"),
    publicUrl: url('ALCOVE_PROXY_URL', 'where clients reach the proxy; that name itself is no preview'),
    telemetry: readTelemetry(environment, 'alcove-proxy'),
  }))
