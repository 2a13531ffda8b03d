// Lets toolbox calls and previews reach a sandbox's agent. Every call needs a ticket.
import { Problem } from '#src/problems.ts'
import type { Access } from '#src/wire/access.ts'
import { localGateId } from '#src/wire/hosts.ts'
import type { AdmittedSandbox, Sandboxes, SandboxPlace } from './sandboxes.ts'
import type { Need, TicketChecks } from './tickets.ts'

export type Entering = AdmittedSandbox & Pick<Access, 'ticket' | 'gate' | 'silentSince'>

export type Door = { enter: (entering: Entering, need: NeedInside) => Promise<SandboxPlace> }

/** What a ticket must allow in a sandbox: a call to the toolbox, or a connection to a port. */
type NeedInside = { method: string; path: string } | { port: number }

export const createDoor = (
  sandboxes: Pick<Sandboxes, 'find'>,
  tickets: Pick<TicketChecks, 'check'>,
  gateId = localGateId,
): Door => ({
  /**
   * Checks a call's ticket. Returns the sandbox as its runner reports it, and a link to the runner. Throws a Problem if the ticket
   * does not allow the call.
   */
  enter: async (entering, need) => {
    const {
      organizationId,
      runnerAddress,
      gateId: home = gateId,
    } = await tickets.check(entering.ticket, {
      sandboxId: entering.sandboxId,
      ...need,
    } satisfies Need)
    // A ticket for another gate names a unix socket of that gate's host. On this host, the path could be the socket of any program.
    if (home !== gateId) throw new Problem('unauthorized', undefined, { cause: 'the ticket is for another gate' })
    // For a call from another gate, the runner's address comes only from the signed ticket. Otherwise that gate could choose any
    // socket of this host.
    const found = await sandboxes.find({ ...entering, ...(runnerAddress !== undefined && { runnerAddress }) })
    // `found` has the present owner, because `find` has waited for the generation that control requires. This is true even just
    // after a claim.
    if (found.sandbox !== undefined && found.sandbox.assignment.organizationId !== organizationId) {
      throw new Problem('unauthorized', undefined, { cause: 'the ticket is for another organization' })
    }
    return found
  },
})
