import { useEffect, useState } from 'react'
import { session } from '../session/session.ts'

const units = [
  ['year', 31_536_000],
  ['month', 2_592_000],
  ['day', 86_400],
  ['hour', 3600],
  ['minute', 60],
] as const
const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto', style: 'short' })
const absolute = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' })

/** Says how far `time` is from `now`, such as "3 min. ago". Both are in ms since 1970. */
export const sinceText = (time: number, now: number): string => {
  const seconds = Math.round((time - now) / 1000)
  for (const [unit, size] of units)
    if (Math.abs(seconds) >= size) return relative.format(Math.trunc(seconds / size), unit)
  return Math.abs(seconds) < 10 ? 'now' : relative.format(seconds, 'second')
}

const listeners = new Set<() => void>()
setInterval(() => {
  for (const listener of listeners) listener()
}, 10_000)

/** Shows how long ago a time was, by the server's clock. The tooltip has the exact time. */
export const TimeAgo = ({ time }: { time: string | null | undefined }) => {
  const [, draw] = useState(0)
  useEffect(() => {
    const listener = () => draw((n) => n + 1)
    listeners.add(listener)
    return () => {
      listeners.delete(listener)
    }
  }, [])
  if (time == null) return <span className="muted">–</span>
  const date = new Date(time)
  return (
    <time dateTime={time} title={absolute.format(date)}>
      {sinceText(date.getTime(), session.now())}
    </time>
  )
}

/** The exact time as a text, in the reader's time zone. */
export const timeText = (time: string): string => absolute.format(new Date(time))
