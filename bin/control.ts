// control: the API of the server. Its settings are in src/control/config.ts.
import { loadConfig } from '#src/control/config.ts'
import { startProgram } from '#src/control/main.ts'
import { createLog, logWholeProcess } from '#src/kit/log.ts'

const log = createLog('control')
logWholeProcess(log)
const start = async () => await startProgram(loadConfig(process.env))
/** Whoever started us is told why in a sentence; the log has all of it. */
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
    // A client that does not let go does not keep us.
    setTimeout(() => process.exit(0), 3_000).unref()
    stop().then(
      () => process.exit(0),
      () => process.exit(1),
    )
  })
}
process.send?.({ type: 'ready' })
