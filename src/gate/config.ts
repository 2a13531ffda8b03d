import { showsCertificate } from '#src/kit/credential.ts'
import { readSettings } from '#src/kit/settings.ts'
import { readTelemetry, type TelemetrySettings } from '#src/kit/telemetry/settings.ts'

export type GateConfig = {
  listen: { host: string; port: number }
  controlUrl: URL
  /** The gate's key. Empty if the gate authenticates to control with its certificate. */
  proxyKey: string
  /** Directory with the gate's certificate. Undefined: the gate has no certificate. */
  certificatesDirectory?: string | undefined
  /** The public address at which clients call the gate. */
  publicUrl: URL
  /**
   * Socket of this host's runner. Absent: this host has no runner, and the gate connects only to runners whose address control
   * returns.
   */
  runnerSocket: string | undefined
  /** Id of this gate, which is the id of its host's runner. Absent: this gate runs on the server's own machine. */
  gateId?: string | undefined
  /** Address on which the gate accepts connections of gates of other hosts. Absent: the gate accepts no such connections. */
  peersListen?: { host: string; port: number } | undefined
  /** Timeout in seconds of an `execute` call that has no timeout and does not come from an SDK. 0: no timeout. */
  executeTimeoutSeconds: number
  telemetry: TelemetrySettings
}

export const loadConfig = (environment = process.env): GateConfig =>
  readSettings(environment, ({ address, url, text, optional, complain }) => {
    const listen = address('ALCOVE_LISTEN', 'host:port that the gate serves on')
    const controlUrl = url('ALCOVE_CONTROL_URL', 'URL of control, such as http://127.0.0.1:3000')
    const certificatesDirectory = optional('ALCOVE_CERTIFICATES_DIR')
    const hasPeers = optional('ALCOVE_GATE_PEERS_LISTEN') !== undefined
    const peersListen = hasPeers
      ? address('ALCOVE_GATE_PEERS_LISTEN', 'host:port on which the gate listens for gates of other hosts')
      : undefined
    if (hasPeers && certificatesDirectory === undefined) {
      complain('ALCOVE_GATE_PEERS_LISTEN needs ALCOVE_CERTIFICATES_DIR: gates prove themselves by certificates')
    }
    return {
      listen,
      controlUrl,
      certificatesDirectory,
      proxyKey: showsCertificate(controlUrl, certificatesDirectory)
        ? ''
        : text(
            'ALCOVE_PROXY_KEY',
            'key of the gate (formerly called the proxy) for control; not needed with a certificate',
          ),
      publicUrl: url(
        'ALCOVE_PROXY_URL',
        'URL at which clients reach the gate (formerly called the proxy); this host name has no preview',
      ),
      runnerSocket: optional('ALCOVE_RUNNER_SOCKET'),
      gateId: optional('ALCOVE_GATE_ID'),
      peersListen,
      executeTimeoutSeconds: readExecuteTimeout(optional('ALCOVE_EXECUTE_TIMEOUT_SECONDS'), complain),
      telemetry: readTelemetry(environment, 'alcove-gate'),
    }
  })

/** Default timeout of an `execute` call in seconds. Daytona's public API has the same default. */
export const defaultExecuteTimeoutSeconds = 10

const readExecuteTimeout = (given: string | undefined, complain: (sentence: string) => void): number => {
  if (given === undefined) return defaultExecuteTimeoutSeconds
  if (/^\d{1,6}$/.test(given)) return Number(given)
  complain('ALCOVE_EXECUTE_TIMEOUT_SECONDS is not usable: whole seconds, up to 999999; 0 disables the limit')
  return defaultExecuteTimeoutSeconds
}
