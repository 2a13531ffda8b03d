// Lets a call wait until a sandbox is what control wants of it. One from a warm pool is somebody's before its runner has heard
// of it, and nobody gets inside with less than was asked for with it (docs/adr/0014-warm-pools-follow-demand.md).
import type { IncomingHttpHeaders } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { Problem } from '#src/problems.ts'
import { generationHeader } from '#src/wire/access.ts'
import type { Host } from './host.ts'

/** A verb that is carried out meanwhile takes milliseconds; a link that was lost, a second or two. */
const mostMs = 10_000
/** From one look to the next: mostly the claim is here at the first, or a moment later. */
const lookMs = { first: 1, longest: 50 }

/** Resolves at once for a sandbox that is not here, and for a call that names no generation. Throws a 503 after ten seconds. */
export const untilTaken = async (
  host: Pick<Host, 'get'>,
  sandboxId: string,
  { [generationHeader]: named }: IncomingHttpHeaders,
): Promise<void> => {
  if (named === undefined) return
  const least = Number(named)
  const deadline = performance.now() + mostMs
  for (let waitMs = lookMs.first; ; waitMs = Math.min(waitMs * 2, lookMs.longest)) {
    const { generation = least } = host.get(sandboxId)?.assignment ?? {}
    if (!(generation < least)) return
    if (performance.now() > deadline) throw new Problem('unavailable', 'The sandbox is being made ready; try again.')
    await pause(waitMs)
  }
}
