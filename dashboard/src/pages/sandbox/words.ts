// Says in words what the settings of a sandbox mean.
import type { Sandbox } from '../../api/client.ts'

const count = (number: number, unit: string) => `${number} ${unit}${number === 1 ? '' : 's'}`

/** A length of time in words, such as "1 day 2 hours". */
export const minutesText = (minutes: number): string => {
  const parts = [
    { number: Math.floor(minutes / 1440), unit: 'day' },
    { number: Math.floor((minutes % 1440) / 60), unit: 'hour' },
    { number: minutes % 60, unit: 'minute' },
  ].filter(({ number }) => number > 0)
  return parts.length === 0 ? count(0, 'minute') : parts.map(({ number, unit }) => count(number, unit)).join(' ')
}

/** Says what a timer does if it is set to `minutes`. */
export const timerText = {
  autoStopInterval: (minutes: number) =>
    minutes > 0 ? `Stops after ${minutesText(minutes)} without activity` : 'Does not stop by itself',
  autoPauseInterval: (minutes: number) =>
    minutes > 0 ? `Pauses after ${minutesText(minutes)} without activity` : 'Does not pause by itself',
  autoArchiveInterval: (minutes: number) =>
    minutes > 0
      ? `Is archived ${minutesText(minutes)} after it stops`
      : 'Is archived as late as the server allows after it stops',
  autoDeleteInterval: (minutes: number) => {
    if (minutes < 0) return 'Is not deleted by itself'
    return minutes === 0 ? 'Is deleted as soon as it stops' : `Is deleted ${minutesText(minutes)} after it stops`
  },
} as const

export type TimerName = keyof typeof timerText

export const timerNames = Object.keys(timerText) as TimerName[]

type Network = Pick<Sandbox, 'networkBlockAll' | 'networkAllowList' | 'domainAllowList'>

/** Says to which domains and addresses the sandbox may connect. */
export const networkText = ({ networkBlockAll, networkAllowList, domainAllowList }: Network): string => {
  if (networkBlockAll) return 'Closed: it reaches nothing outside'
  const allowed = [domainAllowList, networkAllowList]
    .flatMap((list) => list?.split(',') ?? [])
    .map((item) => item.trim())
    .filter((item) => item !== '')
  return allowed.length === 0 ? 'Open: it reaches the Internet' : `Only ${allowed.join(', ')}`
}

/** Whether an address is http or https. The page opens no other address, because `javascript:` would run as a script. */
export const isWebAddress = (text: string): boolean => /^https?:\/\//i.test(text)

/**
 * The name of a sandbox for the page. The server renames a deleted sandbox to `DESTROYED_name_time`; the page shows its old name.
 */
export const nameOf = ({ name, state }: Pick<Sandbox, 'name' | 'state'>): string =>
  state === 'destroying' || state === 'destroyed' ? (/^DESTROYED_(.*)_\d+$/s.exec(name)?.[1] ?? name) : name
