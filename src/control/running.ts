// What every room of a running server is built from: the parts that are made once, and what links its processes and runners.
import type { Callers } from '#src/control/auth/callers.ts'
import type { Parts } from './parts.ts'
import type { RunnerLinks } from './runner-links.ts'
import type { ChangeFeed } from './sandboxes/record/changes.ts'

export type RunningOptions = {
  /** How long a create, a fork or a resize waits for its end before it answers what is there. */
  createWaitSeconds: number
  /** How long a pause or a resume does: it is nearly always done at once. */
  momentMilliseconds: number
  /** How many times a runner's cpu, memory and disk may be promised. Idle sandboxes use next to nothing of each. */
  overcommit: { cpu: number; memory: number; disk: number }
  /** How often a runner says that it is alive, and how long it may be silent before nothing new is given to it. */
  heartbeatSeconds: number
  leaseSeconds: number
  sweepSeconds: number
  /** How often a socket that watches must show that somebody is there. */
  eventPingSeconds: number
  /** Most sandboxes that the server keeps started ahead for each snapshot in a region, as they are in demand. */
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
