// Writes and reads the headers in which one gate tells another what control has answered about a call.
import type { IncomingHttpHeaders } from 'node:http'
import { peerHeaders } from '#src/wire/gate-peers.ts'
import type { Entering } from '../door.ts'

export const ofPlace = ({ ticket, isStarted, leastGeneration }: Entering): string[] => [
  ...[peerHeaders.ticket, ticket, peerHeaders.isStarted, isStarted ? 'yes' : 'no'],
  ...(leastGeneration === undefined ? [] : [peerHeaders.leastGeneration, String(leastGeneration)]),
]

/**
 * Reads what another gate says in headers about a sandbox. The headers do not contain the runner's address, because the other gate
 * could name any socket of this machine. The address comes from the ticket.
 */
export const readPlace = (headers: IncomingHttpHeaders, sandboxId: string): Entering => {
  const least = Number(headers[peerHeaders.leastGeneration])
  return {
    sandboxId,
    ticket: String(headers[peerHeaders.ticket] ?? ''),
    runnerAddress: '',
    isStarted: headers[peerHeaders.isStarted] === 'yes',
    ...(Number.isSafeInteger(least) && least >= 0 && { leastGeneration: least }),
  }
}
