// For tests: starts a `Keeper`, which makes each sandbox what control wants, on a simulated host. Collects the keeper's reports.
import { silentLog } from '#src/kit/log.ts'
import { Keeper, type KeeperParts } from '#src/runner/keeping/keeper.ts'
import type { Report } from '#src/wire/runner-link.ts'
import { SimulatedHost } from './simulated-host.ts'

export const startKeeper = (parts: Partial<KeeperParts> = {}) => {
  const host = new SimulatedHost()
  const reports: Report[] = []
  let wake = Promise.withResolvers<void>()
  const time = { now: 1_000_000 }
  const keeper = new Keeper({
    host,
    log: silentLog(),
    now: () => time.now,
    retryMs: [1],
    ...parts,
    report: (report) => {
      reports.push(report)
      wake.resolve()
      wake = Promise.withResolvers()
    },
  })
  return {
    keeper,
    host,
    reports,
    time,
    /** Returns what was reported, in the form `box 3 started`: sandbox, generation, state. */
    said: () => reports.map(({ sandboxId, generation, state }) => `${sandboxId} ${generation} ${state}`),
    reported: async (count: number) => {
      while (reports.length < count) await wake.promise
    },
    settled: async () => {
      do await new Promise(setImmediate)
      while (host.running > 0)
      await new Promise(setImmediate)
    },
    [Symbol.dispose]: () => keeper[Symbol.dispose](),
  }
}

/** Returns a promise `passed`, and a function `open` that resolves it. A test makes a verb wait for `passed`. */
export const gate = () => {
  const { promise, resolve } = Promise.withResolvers<void>()
  return { passed: promise, open: resolve }
}
