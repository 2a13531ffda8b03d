// The SSH gateway: connects SSH clients to sandboxes through the gate. It asks control whether a client's token is valid.

import { flushCompileCache } from 'node:module'
import { createLog, logWholeProcess } from '#src/kit/log.ts'
import { openTelemetry } from '#src/kit/telemetry/open.ts'
import { loadConfig } from '#src/ssh-gateway/config.ts'
import { startSshGateway } from '#src/ssh-gateway/main.ts'

const log = createLog('ssh-gateway')
logWholeProcess(log)
const config = loadConfig()
const telemetry = await openTelemetry(config.telemetry, log)
const gateway = await startSshGateway(config, log)
for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  process.once(signal, async () => {
    await gateway.close()
    await telemetry.close()
    process.exit(0)
  })
}
// Stores the compiled code now. Node does this at the end of a process, but not if the process is killed.
flushCompileCache()
process.send?.({ type: 'ready' })
