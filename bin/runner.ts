// The runner: starts, stops and removes the sandboxes of this host. When this program ends, the sandboxes keep running.
import { flushCompileCache } from 'node:module'
import { createLog, logWholeProcess } from '#src/kit/log.ts'
import { openTelemetry } from '#src/kit/telemetry/open.ts'
import { loadConfig } from '#src/runner/config.ts'
import { startRunner } from '#src/runner/main.ts'

const log = createLog('runner')
logWholeProcess(log)
/** Ends this process, after it has sent the reason in one sentence to the parent process (`up`). */
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
    // Exits after 2.5 s even if the runner could not close everything. Nothing is lost, because the sandboxes keep
    // running without the runner.
    setTimeout(() => process.exit(0), 2500).unref()
    await runner.close()
    await telemetry.close()
    process.exit(0)
  })
}
runner.barred.then((why) => giveUp(new Error(why)))
await runner.ready.catch(giveUp)
// Stores the compiled code now. Node does this at the end of a process, but not if the process is killed.
flushCompileCache()
process.send?.({ type: 'ready' })
