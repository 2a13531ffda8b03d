import { silentLog } from '#src/kit/log.ts'
import { testEncryption } from '#test/control/test-settings.ts'
import { SharedCounters } from '../shared-counters.ts'

/** Returns counters for tests. They are shared with no other control process. */
export const countersAlone = (): SharedCounters =>
  SharedCounters.of({ database: {} as never, log: silentLog(), encryption: testEncryption })
