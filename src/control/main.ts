// The program control. It opens and migrates the database, serves calls, and stops within three seconds of SIGTERM.
import { backlog } from '#src/http/connections.ts'
import { systemClock } from '#src/kit/clock.ts'
import { createLog } from '#src/kit/log.ts'
import { openTelemetry } from '#src/kit/telemetry/open.ts'
import { createApp } from './app.ts'
import { bootstrap } from './bootstrap.ts'
import type { ControlConfig } from './config.ts'
import { smtpTransport } from './mail/transport.ts'
import { checkReachable, openDatabase } from './storage/database.ts'
import { migrate } from './storage/migrate.ts'

type Running = { address: string; stop: () => Promise<void> }

export const startProgram = async ({
  databaseUrl,
  listen,
  firstKey,
  mostWarm,
  overcommit,
  encryption,
  smtp,
  settings,
  telemetry,
}: ControlConfig): Promise<Running> => {
  const log = createLog('control')
  const telling = await openTelemetry(telemetry, log)
  const database = openDatabase(databaseUrl)
  await checkReachable(database, databaseUrl)
  const applied = await migrate(database)
  if (applied.length > 0) log.info({ applied }, 'migrated the database')
  const parts = { database, clock: systemClock, log, settings, encryption }
  await bootstrap(parts, firstKey)
  const app = await createApp(parts, { mostWarm, overcommit }, { transport: smtp && smtpTransport(smtp) })
  app.metrics.includeProcess()
  const address = await app.server.listen({ ...listen, backlog })
  const { hostsListen } = settings
  const hostsAddress = hostsListen && (await app.hosts?.server.listen({ ...hostsListen, backlog }))
  log.info({ address, hostsAddress }, 'control serves')
  return {
    address,
    stop: async () => {
      await app.close()
      await database.close()
      log.info('control stopped')
      await telling.close()
    },
  }
}
