// For tests: a timer of a second or more runs only when the test advances the time. Shorter timers, which streams and libraries
// need, run as usual.
import { mock } from 'node:test'

const longMs = 1000

export type LongTimers = Disposable & {
  pass: (milliseconds: number) => void
  /** Returns how many timers with exactly this delay are waiting. */
  waiting: (milliseconds: number) => number
}

export const holdLongTimers = (): LongTimers => {
  const run = globalThis.setTimeout
  mock.timers.enable({ apis: ['setTimeout'] })
  const hold = globalThis.setTimeout
  const forget = globalThis.clearTimeout
  const held = new Map<unknown, number>()
  globalThis.setTimeout = ((work: (...args: unknown[]) => void, milliseconds = 0, ...args: unknown[]) => {
    if (milliseconds < longMs) return run(work, milliseconds, ...args)
    const timer = hold(() => {
      held.delete(timer)
      work(...args)
    }, milliseconds)
    held.set(timer, milliseconds)
    return timer
  }) as typeof setTimeout
  globalThis.clearTimeout = ((timer: NodeJS.Timeout | undefined) => {
    if (held.delete(timer)) forget(timer)
    else timer?.close?.()
  }) as typeof clearTimeout
  return {
    pass: (milliseconds) => mock.timers.tick(milliseconds),
    waiting: (milliseconds) => [...held.values()].filter((delay) => delay === milliseconds).length,
    [Symbol.dispose]: () => mock.timers.reset(),
  }
}
