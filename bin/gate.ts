// The gate: serves the toolboxes and previews of the sandboxes on this host. Control says whether a caller has access; the call
// then goes to the agent in the sandbox.

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
// Stores the compiled code now. Node does this at the end of a process, but not if the process is killed.
flushCompileCache()
process.send?.({ type: 'ready' })
