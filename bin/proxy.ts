// Serves the toolboxes and previews of this host's sandboxes: checks who calls with control, and asks the sandboxes' agents.
import { createLog, logWholeProcess } from '#src/kit/log.ts'
import { openTelemetry } from '#src/kit/telemetry/open.ts'
import { loadConfig } from '#src/proxy/config.ts'
import { startProxy } from '#src/proxy/main.ts'

const log = createLog('proxy')
logWholeProcess(log)
const config = loadConfig()
const telemetry = await openTelemetry(config.telemetry, log)
const proxy = await startProxy(config, log)
for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  process.once(signal, async () => {
    await proxy.close()
    await telemetry.close()
    process.exit(0)
  })
}
process.send?.({ type: 'ready' })
