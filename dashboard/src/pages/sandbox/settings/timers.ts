// Turns the timers of a sandbox into the fields of a form, and the changed fields into calls.
import type { TimerName } from '../words.ts'

export type Timers = Record<TimerName, string>

/** A call that sets a timer of the sandbox to a number of minutes. */
export type TimerCall = { name: TimerName; minutes: number }

/** Reads the number in a field. Undefined if the text is not a whole number, or if the timer cannot have that number. */
export const readTimer = (name: TimerName, text: string): number | undefined => {
  if (!/^-?\d{1,9}$/.test(text.trim())) return undefined
  const minutes = Number(text)
  return minutes >= (name === 'autoDeleteInterval' ? -1 : 0) ? minutes : undefined
}

/**
 * Returns the changed timers in an order that the server accepts: first those that exclude no other timer. Auto-stop excludes
 * auto-pause, and auto-pause excludes deletion at the stop.
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
