// The parts of a running server for every module: the shared parts, and the links to runners and to other processes.
import type { Callers } from '#src/control/auth/callers.ts'
import type { Parts } from './parts.ts'
import type { RunnerLinks } from './runner-links.ts'
import type { ChangeFeed } from './sandboxes/record/changes.ts'

export type RunningOptions = {
  /**
   * Seconds for which a create, a fork or a resize waits until it is done. After that, the answer shows the present
   * state.
   */
  createWaitSeconds: number
  /**
   * Milliseconds for which a pause or a resume waits until it is done. Nearly every pause and resume is done within
   * this time.
   */
  momentMilliseconds: number
  /**
   * Overcommit: how many times the CPUs, memory and disk of a runner may be assigned to sandboxes. Idle sandboxes use
   * very little of each.
   */
  overcommit: { cpu: number; memory: number; disk: number }
  /** Seconds between two heartbeats of a runner, and the silence after which it gets no new work. */
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
  /** Counts the creates of each snapshot (warm-pools/demand.ts). */
  demand: { count: (of: { snapshotId: string; regionId: string }) => void }
  options: RunningOptions
}
