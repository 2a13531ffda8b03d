// The program runner: keeps the sandboxes of this host. They keep running when it ends.
import { flushCompileCache } from 'node:module'
import { createLog, logWholeProcess } from '#src/kit/log.ts'
import { openTelemetry } from '#src/kit/telemetry/open.ts'
import { loadConfig } from '#src/runner/config.ts'
import { startRunner } from '#src/runner/main.ts'

const log = createLog('runner')
logWholeProcess(log)
/** Gives the parent process (`up`) the reason in a sentence. The log has the details. */
const giveUp = async (error: Error): Promise<never> => {
  log.fatal({ err: error.cause ?? error }, error.message)
  await new Promise((resolve) => {
    if (process.send) process.send({ type: 'barred', why: error.message }, resolve)
    else resolve(undefined)
  })
  process.exit(1)
}
const start = async () => {
  const config = loadConfig()
  const telemetry = await openTelemetry(config.telemetry, log)
  const runner = await startRunner(config, log, {
    onProgress: ({ step, percent }) => process.send?.({ type: 'progress', step, percent }),
    onRefused: (isRefused) => process.send?.({ type: 'refused', isRefused }),
  })
  return { telemetry, runner }
}
const { telemetry, runner } = await start().catch(giveUp)
for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  process.once(signal, async () => {
    // Exits after 2.5 s even if something hangs. The sandboxes are safe, and a late end is worse than an abrupt one.
    setTimeout(() => process.exit(0), 2500).unref()
    await runner.close()
    await telemetry.close()
    process.exit(0)
  })
}
runner.barred.then((why) => giveUp(new Error(why)))
await runner.ready.catch(giveUp)
// A program that is killed leaves its compiled code to its next start, as one that ends by itself does.
flushCompileCache()
process.send?.({ type: 'ready' })
