// Starts the telemetry of a program. If the operator has not set up telemetry, no package of OpenTelemetry is loaded.
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
