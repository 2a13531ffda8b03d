// The program ssh-gateway: lets SSH clients into sandboxes. It asks control about tokens, and the gate for everything inside.

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
// A program that is killed leaves its compiled code to its next start, as one that ends by itself does.
flushCompileCache()
process.send?.({ type: 'ready' })
