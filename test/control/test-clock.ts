// A clock for tests. The time changes only when a test advances the clock.
import type { Clock } from '#src/kit/clock.ts'

export type Time = { hours?: number; minutes?: number; seconds?: number; milliseconds?: number }

export class TestClock implements Clock {
  #now: number

  constructor(start: Date = new Date()) {
    this.#now = start.getTime()
  }

  now = (): Date => new Date(this.#now)

  advance({ hours = 0, minutes = 0, seconds = 0, milliseconds = 0 }: Time): void {
    this.#now += ((hours * 60 + minutes) * 60 + seconds) * 1000 + milliseconds
  }
}
