import { readSettings } from '#src/kit/settings.ts'
import { readTelemetry, type TelemetrySettings } from '#src/kit/telemetry/settings.ts'

export type SshGatewayConfig = {
  listen: { host: string; port: number }
  controlUrl: URL
  gateUrl: URL
  /** The service key with which the gateway asks control about tokens. */
  key: string
  /** The private host key, in OpenSSH's format. */
  hostKey: string
  telemetry: TelemetrySettings
}

export const loadConfig = (environment = process.env): SshGatewayConfig =>
  readSettings(environment, ({ address, url, text }) => ({
    listen: address('ALCOVE_LISTEN', 'host:port that the SSH gateway serves on'),
    controlUrl: url('ALCOVE_CONTROL_URL', 'URL of control, such as http://127.0.0.1:3000'),
    gateUrl: url('ALCOVE_GATE_URL', 'URL of the gate, such as http://127.0.0.1:3001'),
    key: text('ALCOVE_SSH_GATEWAY_KEY', "the gateway's own key for control"),
    hostKey: text('ALCOVE_SSH_HOST_KEY', 'private host key in the format of OpenSSH'),
    telemetry: readTelemetry(environment, 'alcove-ssh-gateway'),
  }))
