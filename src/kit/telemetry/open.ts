// Starts the telemetry of a program if the operator has configured it. Otherwise no package of OpenTelemetry is loaded,
// which saves memory and time.
import type { Logger } from '#src/kit/log.ts'
import type { TelemetrySettings } from './settings.ts'

export type OpenTelemetry = {
  /** Sends the telemetry that is still queued, and resolves in less than a second. Called before the program ends. */
  close: () => Promise<void>
}

export const openTelemetry = async (settings: TelemetrySettings, log: Logger): Promise<OpenTelemetry> => {
  for (const warning of settings.warnings) log.warn(warning)
  if (Object.keys(settings.send).length === 0) return { close: async () => {} }
  const { startSdk } = await import('./sdk.ts')
  return await startSdk(settings, log)
}
