// Opens the telemetry of a program, where its operator has asked for any. Only then is a package of OpenTelemetry loaded.
import type { Logger } from '#src/kit/log.ts'
import type { TelemetrySettings } from './settings.ts'

export type OpenTelemetry = {
  /** Sends what waits, for less than a second; then the program may end. */
  close: () => Promise<void>
}

export const openTelemetry = async (settings: TelemetrySettings, log: Logger): Promise<OpenTelemetry> => {
  for (const warning of settings.warnings) log.warn(warning)
  if (Object.keys(settings.send).length === 0) return { close: async () => {} }
  const { startSdk } = await import('./sdk.ts')
  return await startSdk(settings, log)
}
