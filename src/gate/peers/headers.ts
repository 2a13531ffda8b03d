// The headers that carry control's answer from gate to gate.
import type { IncomingHttpHeaders } from 'node:http'
import { peerHeaders } from '#src/wire/gate-peers.ts'
import type { Entering } from '../door.ts'

export const ofPlace = ({ ticket, isStarted, leastGeneration }: Entering): string[] => [
  ...[peerHeaders.ticket, ticket, peerHeaders.isStarted, isStarted ? 'yes' : 'no'],
  ...(leastGeneration === undefined ? [] : [peerHeaders.leastGeneration, String(leastGeneration)]),
]

/**
 * Reads what the calling gate says about a sandbox. The ticket names the runner's address, so the calling gate gives
 * none: it could name any socket of this machine.
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
