// Connects two streams: copies bytes that arrive on one to the other, only as fast as the other stream's reader. Passes the end
// of each direction on. An error of one stream ends both.
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
