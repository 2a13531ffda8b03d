// Limits how many 1xx answers a server may send to one request. The gate drops these answers, so a hostile server could send them
// without end.
import type { ClientRequest } from 'node:http'

/** Maximum number of 1xx answers per call. */
const mostInterim = 64

/** Makes the request fail if the request gets more 1xx answers than any honest server sends. */
export const withFewInterim = (outgoing: ClientRequest): ClientRequest => {
  let interim = 0
  return outgoing.on('information', () => {
    interim += 1
    if (interim > mostInterim) outgoing.destroy(new Error('too many interim answers'))
  })
}
