// The way to a sandbox's agent, for toolbox calls and previews alike. Nobody passes without a ticket.
import { Problem } from '#src/problems.ts'
import type { Access } from '#src/wire/access.ts'
import type { Found, Sandboxes, Wanted } from './sandboxes.ts'
import type { Need, Tickets } from './tickets.ts'

export type Entering = Wanted & Pick<Access, 'ticket'>

export type Door = { enter: (entering: Entering, need: NeedInside) => Promise<Found> }

/** Which sandbox is meant, `Entering` says. */
type NeedInside = { method: string; path: string } | { port: number }

export const createDoor = (sandboxes: Pick<Sandboxes, 'find'>, tickets: Pick<Tickets, 'check'>): Door => ({
  /** The sandbox as `Sandboxes.find` has it. Throws the refusal. */
  enter: async (entering, need) => {
    const { organizationId } = await tickets.check(entering.ticket, {
      sandboxId: entering.sandboxId,
      ...need,
    } satisfies Need)
    const found = await sandboxes.find(entering)
    // A sandbox of a warm pool changes hands: its runner says whose it is for the generation that control means.
    if (found.sandbox !== undefined && found.sandbox.assignment.organizationId !== organizationId) {
      throw new Problem('unauthorized', undefined, { cause: 'the ticket is for another organization' })
    }
    return found
  },
})
