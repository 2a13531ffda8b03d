import { readSettings } from '#src/kit/settings.ts'
import { readTelemetry, type TelemetrySettings } from '#src/kit/telemetry/settings.ts'

export type GateConfig = {
  listen: { host: string; port: number }
  controlUrl: URL
  proxyKey: string
  /** What clients call us: a name that is ours, whatever it looks like. */
  publicUrl: URL
  /** Where the runner of this host listens for us. Absent: only those that control names are asked. */
  runnerSocket: string | undefined
  /** Limit in seconds of an execute that names none and comes from no SDK; 0: none. */
  executeTimeoutSeconds: number
  telemetry: TelemetrySettings
}

export const loadConfig = (environment = process.env): GateConfig =>
  readSettings(environment, ({ address, url, text, optional, complain }) => ({
    listen: address('ALCOVE_LISTEN', 'host:port that the gate serves on'),
    controlUrl: url('ALCOVE_CONTROL_URL', 'where control serves, such as http://127.0.0.1:3000'),
    proxyKey: text('ALCOVE_PROXY_KEY', "the gate's own key for control"),
    publicUrl: url('ALCOVE_PROXY_URL', 'where clients reach the gate; that name itself is no preview'),
    runnerSocket: optional('ALCOVE_RUNNER_SOCKET'),
    executeTimeoutSeconds: readExecuteTimeout(optional('ALCOVE_EXECUTE_TIMEOUT_SECONDS'), complain),
    telemetry: readTelemetry(environment, 'alcove-gate'),
  }))

/** The interface's own default. */
export const defaultExecuteTimeoutSeconds = 10

const readExecuteTimeout = (given: string | undefined, complain: (sentence: string) => void): number => {
  if (given === undefined) return defaultExecuteTimeoutSeconds
  if (/^\d{1,6}$/.test(given)) return Number(given)
  complain('ALCOVE_EXECUTE_TIMEOUT_SECONDS is not usable: whole seconds, up to 999999; 0 disables the limit')
  return defaultExecuteTimeoutSeconds
}
