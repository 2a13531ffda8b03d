// Serves every sandbox's toolbox: checks who calls with control, then forwards to the runner that holds the sandbox.
import { createLog } from '#src/kit/log.ts'
import { loadConfig } from '#src/proxy/config.ts'
import { startProxy } from '#src/proxy/main.ts'

const log = createLog('proxy')
const proxy = await startProxy(loadConfig(), log)
for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  process.once(signal, async () => {
    await proxy.close()
    process.exit(0)
  })
}
process.send?.({ type: 'ready' })
