// The program control: serves the API. Its settings are in src/control/config.ts.
import { flushCompileCache } from 'node:module'
import { loadConfig } from '#src/control/config.ts'
import { startProgram } from '#src/control/main.ts'
import { createLog, logWholeProcess } from '#src/kit/log.ts'

const log = createLog('control')
logWholeProcess(log)
const start = async () => await startProgram(loadConfig(process.env))
/** Gives the parent process (`up`) the reason in a sentence. The log has the details. */
const giveUp = async (error: Error): Promise<never> => {
  log.fatal({ err: error.cause ?? error }, error.message)
  await new Promise((resolve) => {
    if (process.send) process.send({ type: 'barred', why: error.message }, resolve)
    else resolve(undefined)
  })
  process.exit(1)
}
const { stop } = await start().catch(giveUp)
let isStopping = false
for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  process.on(signal, () => {
    if (isStopping) return
    isStopping = true
    // A client that does not close its connection must not delay our end.
    setTimeout(() => process.exit(0), 3_000).unref()
    stop().then(
      () => process.exit(0),
      () => process.exit(1),
    )
  })
}
// A program that is killed leaves its compiled code to its next start, as one that ends by itself does.
flushCompileCache()
process.send?.({ type: 'ready' })
