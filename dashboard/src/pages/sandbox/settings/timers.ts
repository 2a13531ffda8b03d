// The timers of a sandbox, as a form has them and as they are saved.
import type { TimerName } from '../words.ts'

export type Timers = Record<TimerName, string>

/** A timer that is to be saved. */
export type TimerCall = { name: TimerName; minutes: number }

/** The number that a field holds. Undefined: the text is no whole number that this timer can have. */
export const readTimer = (name: TimerName, text: string): number | undefined => {
  if (!/^-?\d{1,9}$/.test(text.trim())) return undefined
  const minutes = Number(text)
  return minutes >= (name === 'autoDeleteInterval' ? -1 : 0) ? minutes : undefined
}

/**
 * The timers that differ, in the order in which the server takes them. A sandbox either stops or pauses when it is idle,
 * and one that pauses is not deleted at once. So a timer is switched off before the other one is switched on.
 */
export const timerCalls = (saved: Timers, wanted: Timers): TimerCall[] => {
  const calls = (Object.keys(wanted) as TimerName[]).flatMap((name) => {
    const minutes = readTimer(name, wanted[name])
    return minutes === undefined || minutes === readTimer(name, saved[name]) ? [] : [{ name, minutes }]
  })
  const rank = ({ name, minutes }: TimerCall): number => {
    const isFirst = name === 'autoDeleteInterval' ? minutes !== 0 : minutes === 0
    return isFirst ? 0 : 1
  }
  return calls.sort((one, other) => rank(one) - rank(other))
}
