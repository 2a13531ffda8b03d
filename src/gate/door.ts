// The way to a sandbox's agent, for toolbox calls and previews. No call passes without a ticket.
import { Problem } from '#src/problems.ts'
import type { Access } from '#src/wire/access.ts'
import { localGateId } from '#src/wire/hosts.ts'
import type { AdmittedSandbox, Sandboxes, SandboxPlace } from './sandboxes.ts'
import type { Need, TicketChecks } from './tickets.ts'

export type Entering = AdmittedSandbox & Pick<Access, 'ticket' | 'gate' | 'silentSince'>

export type Door = { enter: (entering: Entering, need: NeedInside) => Promise<SandboxPlace> }

/** What a ticket must allow: a call to the toolbox, or a connection to a port. The sandbox is named in `Entering`. */
type NeedInside = { method: string; path: string } | { port: number }

/** `gateId`: the id of this gate. */
export const createDoor = (
  sandboxes: Pick<Sandboxes, 'find'>,
  tickets: Pick<TicketChecks, 'check'>,
  gateId = localGateId,
): Door => ({
  /** Checks the ticket, and returns the sandbox as `Sandboxes.find` does. Throws the refusal. */
  enter: async (entering, need) => {
    const {
      organizationId,
      runnerAddress,
      gateId: home = gateId,
    } = await tickets.check(entering.ticket, {
      sandboxId: entering.sandboxId,
      ...need,
    } satisfies Need)
    // A runner chooses its address. On another host, that could be any socket.
    if (home !== gateId) throw new Problem('unauthorized', undefined, { cause: 'the ticket is for another gate' })
    // The address in the ticket is signed. The other one may come from another gate, which must not name any socket here.
    const found = await sandboxes.find({ ...entering, ...(runnerAddress !== undefined && { runnerAddress }) })
    // A warm sandbox gets a new owner and a new generation when it is claimed. The runner reports both together, so this is
    // the owner in the generation that control named.
    if (found.sandbox !== undefined && found.sandbox.assignment.organizationId !== organizationId) {
      throw new Problem('unauthorized', undefined, { cause: 'the ticket is for another organization' })
    }
    return found
  },
})
