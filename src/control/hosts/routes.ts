// The endpoints with which machines join as hosts.
import { type ControlRoute, route } from '#src/control/auth/route.ts'
import type { Parts } from '#src/control/parts.ts'
import { SharedCounters } from '#src/control/rate-limits/shared-counters.ts'
import { NewRunner, RunnerId } from '#src/control/runners/schemas.ts'
import { Problem } from '#src/problems.ts'
import type { HostCertificates } from '#src/wire/hosts.ts'
import type { Hosts } from './connections.ts'
import { limitFailedJoins } from './failed-joins.ts'
import { renew, replaceToken, trade } from './join.ts'
import { Certificates, Join, Renew } from './schemas.ts'

type HostParts = Parts & {
  /** The certificate authority and the connections of hosts. Undefined if machines may not join over the network. */
  hosts: Hosts | undefined
}

const withAuthority = ({ hosts, ...parts }: HostParts) => {
  if (hosts === undefined) throw new Problem('not_found', 'This server lets no machine join over the network.')
  return { ...parts, authority: hosts.authority }
}

/** Makes new certificates valid in this process at once. The database tells the other control processes. */
const valid = ({ hosts }: HostParts, certificates: HostCertificates): HostCertificates => {
  hosts?.connections.checkAgain(certificates.runnerId)
  return certificates
}

/** The endpoints that only the port for hosts serves. */
export const joinRoutes = (parts: HostParts): ControlRoute[] => {
  const limited = limitFailedJoins(SharedCounters.of(parts))
  return [
    route({
      method: 'POST',
      path: '/runners/join',
      needs: 'public',
      summary: 'Exchanges a runner’s token for certificates. Only the port for hosts serves this call.',
      body: Join,
      replies: { 200: Certificates },
      run: async ({ body, request, reply }) =>
        valid(parts, await limited(request, reply, () => trade(withAuthority(parts), body))),
    }),
  ]
}

export const hostRoutes = (parts: HostParts): ControlRoute[] => [
  route({
    method: 'POST',
    path: '/runners/certificates',
    needs: 'runner',
    summary: 'Renews the certificates of the calling host.',
    body: Renew,
    replies: { 200: Certificates },
    run: async ({ runner, isCertified = false, body }) =>
      valid(parts, await renew(withAuthority(parts), { runner, isCertified }, body)),
  }),
  route({
    method: 'POST',
    path: '/runners/:runnerId/token',
    needs: 'admin',
    givesAccess: true,
    summary: 'Replaces the token of a runner. Only this answer contains the new token.',
    params: RunnerId,
    replies: { 201: NewRunner },
    run: ({ params }) => replaceToken(parts, parts.hosts?.authority, params.runnerId),
  }),
]
