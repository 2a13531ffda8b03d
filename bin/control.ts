// control: the API of the server. Its settings are in src/control/config.ts.
import { loadConfig } from '#src/control/config.ts'
import { startProgram } from '#src/control/main.ts'

const { stop } = await startProgram(loadConfig(process.env))
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
