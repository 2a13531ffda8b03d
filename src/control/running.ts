// The parts of control that modules need while the server runs: the parts of parts.ts, the links to runners, the feed
// that announces changes of sandboxes, and options.
import type { Callers } from '#src/control/auth/callers.ts'
import type { Parts } from './parts.ts'
import type { RunnerLinks } from './runner-links.ts'
import type { ChangeFeed } from './sandboxes/record/changes.ts'

export type RunningOptions = {
  /**
   * Maximum seconds for which a call to create, fork or resize a sandbox waits for the runner. If the runner needs
   * longer, the answer shows the state of the sandbox at that time.
   */
  createWaitSeconds: number
  /**
   * Maximum milliseconds for which a call to pause or resume a sandbox waits for the runner. Nearly every pause and
   * resume is done within this time.
   */
  momentMilliseconds: number
  /**
   * Overcommit: how many times the CPUs, memory and disk of a runner may be assigned to sandboxes. Factors above 1 are
   * possible because idle sandboxes use very little.
   */
  overcommit: { cpu: number; memory: number; disk: number }
  /**
   * Seconds between two heartbeats of a runner. `leaseSeconds`: seconds without a heartbeat after which a runner gets
   * no new sandboxes.
   */
  heartbeatSeconds: number
  leaseSeconds: number
  sweepSeconds: number
  /** Seconds between two pings to the client of an event socket. */
  eventPingSeconds: number
  /** Seconds in which the client of an event socket must answer a ping. */
  eventPongSeconds: number
  /** Maximum number of warm sandboxes per snapshot and region. The actual number depends on demand. */
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
   * Counts how often sandboxes are created from each snapshot, so that warm pools can follow the demand
   * (warm-pools/demand.ts).
   */
  demand: { count: (of: { snapshotId: string; regionId: string }) => void }
  options: RunningOptions
}
