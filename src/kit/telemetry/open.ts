// Opens the telemetry of a program if its operator has configured any. Otherwise no OpenTelemetry package is loaded.
import type { Logger } from '#src/kit/log.ts'
import type { TelemetrySettings } from './settings.ts'

export type OpenTelemetry = {
  /** Sends the queued data in less than a second. After that, the program can end. */
  close: () => Promise<void>
}

export const openTelemetry = async (settings: TelemetrySettings, log: Logger): Promise<OpenTelemetry> => {
  for (const warning of settings.warnings) log.warn(warning)
  if (Object.keys(settings.send).length === 0) return { close: async () => {} }
  const { startSdk } = await import('./sdk.ts')
  return await startSdk(settings, log)
}
