// Connects two streams: copies the bytes of each to the other, no faster than the other can write. When one stream has no more
// bytes, ends the writes to the other stream. An error of one stream ends both streams.
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
