// Keeps the sandboxes of this host. When it ends, they stay.
import { createLog } from '#src/kit/log.ts'
import { openTelemetry } from '#src/kit/telemetry/open.ts'
import { loadConfig } from '#src/runner/config.ts'
import { startRunner } from '#src/runner/main.ts'

const log = createLog('runner')
const config = loadConfig()
const telemetry = await openTelemetry(config.telemetry, log)
const runner = await startRunner(config, log, {
  onProgress: ({ step, percent }) => process.send?.({ type: 'progress', step, percent }),
  onRefused: (isRefused) => process.send?.({ type: 'refused', isRefused }),
})
for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  process.once(signal, async () => {
    // Whatever hangs: the sandboxes are safe, and a runner that ends late is worse than one that is cut off.
    setTimeout(() => process.exit(0), 2500).unref()
    await runner.close()
    await telemetry.close()
    process.exit(0)
  })
}
runner.barred.then((why) => {
  log.fatal(why)
  process.send?.({ type: 'barred', why }, () => process.exit(1))
})
await runner.ready
process.send?.({ type: 'ready' })
