// Checks each call on the port for hosts. The certificate of the connection identifies the caller; a bearer token is
// ignored.
import type { TLSSocket } from 'node:tls'
import type { Guard } from '#src/control/auth/guard.ts'
import type { ControlRoute } from '#src/control/auth/route.ts'
import { Problem } from '#src/problems.ts'
import type { HostProgram } from '#src/wire/hosts.ts'
import type { HostConnections } from './connections.ts'

/** Maps the field `needs` of a route to the program of a host that may call the route. */
const programFor: Partial<Record<ControlRoute['needs'], HostProgram>> = { runner: 'runner', proxy: 'gate' }

/** Whether control serves a route on its port for hosts, where runners and gates call with certificates. */
export const isForHosts = ({ needs }: Pick<ControlRoute, 'needs'>): boolean => programFor[needs] !== undefined

/** Returns the id of the host that calls. Limits count per host, because many hosts may share an address. */
export const hostIn = ({ gateId, runner }: { gateId?: string; runner?: { id: string } }): string | undefined =>
  gateId ?? runner?.id

export const createHostsGuard =
  (connections: Pick<HostConnections, 'find'>): Guard =>
  async (request, { needs }) => {
    if (needs === 'public') return {}
    const known = await connections.find(request.raw.socket as TLSSocket)
    if (known === undefined) throw new Problem('unauthorized', 'This needs a valid certificate of a host.')
    if (known.program !== programFor[needs]) throw new Problem('forbidden')
    const { runnerId: id, regionId } = known
    // A gate of a host belongs to this server, so it may see sandboxes of all regions.
    return known.program === 'gate'
      ? { proxyRegionId: undefined, gateId: id }
      : { runner: { id, regionId }, isCertified: true }
  }
