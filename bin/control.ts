// The program control: serves the API. Its settings are in src/control/config.ts.
import { flushCompileCache } from 'node:module'
import { loadConfig } from '#src/control/config.ts'
import { startProgram } from '#src/control/main.ts'
import { createLog, logWholeProcess } from '#src/kit/log.ts'

const log = createLog('control')
logWholeProcess(log)
const start = async () => await startProgram(loadConfig(process.env))
/** Ends this process, after it has sent the reason in one sentence to the parent process (`up`). */
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
    // Ends this process after 3 s in any case, even if a client keeps its connection open.
    setTimeout(() => process.exit(0), 3_000).unref()
    stop().then(
      () => process.exit(0),
      () => process.exit(1),
    )
  })
}
// Stores the compiled code now. Node does this at the end of a process, but not if the process is killed.
flushCompileCache()
process.send?.({ type: 'ready' })
