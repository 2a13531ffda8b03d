/** Where a program reads the current time. A test passes a clock that it can set. */
export type Clock = { now: () => Date }

export const systemClock: Clock = { now: () => new Date() }
