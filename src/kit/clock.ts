/** The time as a part that is handed in, so that a test can be the one who says what time it is. */
export type Clock = { now: () => Date }

export const systemClock: Clock = { now: () => new Date() }
