import { silentLog } from '#src/kit/log.ts'
import { testEncryption } from '#test/control/test-settings.ts'
import { SharedCounters } from '../shared-counters.ts'

/** Returns counters that no other process shares. */
export const countersAlone = (): SharedCounters =>
  SharedCounters.of({ database: {} as never, log: silentLog(), encryption: testEncryption })
