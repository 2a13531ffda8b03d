// What modules of control need while control runs: `Parts`, the links to runners, the feed of sandbox changes, and
// `RunningOptions`.
import type { Callers } from '#src/control/auth/callers.ts'
import type { Parts } from './parts.ts'
import type { RunnerLinks } from './runner-links.ts'
import type { ChangeFeed } from './sandboxes/record/changes.ts'

export type RunningOptions = {
  /**
   * Maximum seconds for which a create, fork or resize waits for the runner. Then control answers with the sandbox's present state.
   */
  createWaitSeconds: number
  /**
   * Maximum milliseconds for which a call that pauses or resumes a sandbox waits for the runner. A runner usually needs
   * less.
   */
  momentMilliseconds: number
  /**
   * How many times the CPUs, memory and disk of a runner may be assigned. A number above 1 is possible because idle sandboxes use
   * little.
   */
  overcommit: { cpu: number; memory: number; disk: number }
  /**
   * `heartbeatSeconds`: seconds between two heartbeats of a runner. `leaseSeconds`: seconds without a heartbeat after
   * which a runner gets no new sandboxes.
   */
  heartbeatSeconds: number
  leaseSeconds: number
  sweepSeconds: number
  /** Seconds between two pings to a client that gets events over Socket.IO. */
  eventPingSeconds: number
  /** Seconds within which a Socket.IO client must answer a ping. */
  eventPongSeconds: number
  /** Maximum number of warm sandboxes per snapshot and region. The actual number depends on how many sandboxes callers create. */
  mostWarm: number
}

export const standardOptions: RunningOptions = {
  createWaitSeconds: 30,
  momentMilliseconds: 500,
  overcommit: { cpu: 64, memory: 8, disk: 8 },
  heartbeatSeconds: 5,
  leaseSeconds: 20,
  sweepSeconds: 2,
  eventPingSeconds: 25,
  eventPongSeconds: 20,
  mostWarm: 8,
}

export type RunningParts = Parts & {
  callers: Callers
  changes: ChangeFeed
  links: RunnerLinks
  /**
   * Counts the creates from each snapshot in each region, so that the size of warm pools can follow the demand
   * (warm-pools/demand.ts).
   */
  demand: { count: (of: { snapshotId: string; regionId: string }) => void }
  options: RunningOptions
}
