// Joins two streams into one: what comes in on one side goes out on the other, no faster than that side reads. The end of each
// direction is passed on; an error of one side ends both.
import type { Duplex } from 'node:stream'

export const joinStreams = (one: Duplex, other: Duplex): void => {
  for (const [from, to] of [
    [one, other],
    [other, one],
  ] as const) {
    from.on('error', () => to.destroy())
    from.on('close', () => {
      if (!from.readableEnded || !from.writableFinished) to.destroy()
    })
    from.pipe(to)
  }
}
