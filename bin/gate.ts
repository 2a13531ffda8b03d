// The program gate: serves the toolboxes and previews of this host's sandboxes. It asks control who may call, and calls the
// sandboxes' agents.

import { flushCompileCache } from 'node:module'
import { loadConfig } from '#src/gate/config.ts'
import { startGate } from '#src/gate/main.ts'
import { createLog, logWholeProcess } from '#src/kit/log.ts'
import { openTelemetry } from '#src/kit/telemetry/open.ts'

const log = createLog('gate')
logWholeProcess(log)
const config = loadConfig()
const telemetry = await openTelemetry(config.telemetry, log)
const gate = await startGate(config, log)
for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  process.once(signal, async () => {
    await gate.close()
    await telemetry.close()
    process.exit(0)
  })
}
// A program that is killed leaves its compiled code to its next start, as one that ends by itself does.
flushCompileCache()
process.send?.({ type: 'ready' })
