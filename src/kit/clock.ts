/** The source of the current time. A test passes a clock that the test can set. */
export type Clock = { now: () => Date }

export const systemClock: Clock = { now: () => new Date() }
