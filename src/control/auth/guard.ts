// Checks each call before its handler runs: the bearer token, the caller, the organization, and the permission.
import type { FastifyRequest } from 'fastify'
import { Problem } from '#src/problems.ts'
import { readBearer, readOrganizationHeader } from './bearer.ts'
import type { Callers, Holder } from './callers.ts'
import { holds } from './policy.ts'
import type {
  Caller,
  ControlRoute,
  MemberOrSshGatewayContext,
  Needs,
  OrganizationContext,
  OwnerOrCollectorContext,
  ProxyContext,
  UserContext,
} from './route.ts'
import { hashKey, isSameHash } from './secret.ts'

type GuardParts = {
  callers: Callers
  proxyKeyHash: string | undefined
  collectorKeyHash: string | undefined
  sshGatewayKeyHash: string | undefined
  /** Finds the id of the region whose proxy has this key. */
  findProxyRegionId: (keyHash: string) => Promise<string | undefined>
  /** Finds the id of the region whose SSH gateway has this key. */
  findSshRegionId: (keyHash: string) => Promise<string | undefined>
  findRunner: (keyHash: string) => Promise<{ id: string; regionId: string } | undefined>
}

const known = new WeakMap<FastifyRequest, Caller>()

/**
 * Returns the user who makes the call, even if the guard has refused the call. `undefined` without a valid credential
 * of a user.
 */
export const callerOf = (request: FastifyRequest): Caller | undefined => known.get(request)

export type Guard = (request: FastifyRequest, route: Pick<ControlRoute, 'needs' | 'givesAccess'>) => Promise<object>

export const createGuard = ({
  callers,
  proxyKeyHash,
  collectorKeyHash,
  sshGatewayKeyHash,
  findProxyRegionId,
  findSshRegionId,
  findRunner,
}: GuardParts): Guard => {
  const getHolder = async (token: string) => {
    const holder = await callers.find(token)
    if (holder === undefined) throw new Problem('unauthorized')
    return holder
  }

  /**
   * Returns the user as a caller in this organization, or undefined if the user may not act there. Stores the caller with the
   * request, for the audit trail and the rate limits (`callerOf`). A refused user is stored as a caller in the API key's
   * organization, or else in the personal organization.
   */
  const findCaller = async (request: FastifyRequest, holder: Holder, organizationId: string | undefined) => {
    const caller = await holder.in(organizationId)
    const remembered = caller ?? (await holder.in(undefined))
    if (remembered !== undefined) known.set(request, remembered)
    return caller
  }

  /**
   * Returns the caller in an organization. If the user may not act there, throws 404 if the path names the organization, and
   * 403 if only a header does.
   * The answers are the same for an organization that does not exist.
   */
  const getCaller = async (
    request: FastifyRequest,
    holder: Holder,
    { inPath, named }: { inPath?: string | undefined; named?: string | undefined } = {},
  ) => {
    // The organization in the path has priority over the organization in the header.
    const caller = await findCaller(request, holder, inPath ?? named)
    if (caller !== undefined) return caller
    if (inPath !== undefined) throw new Problem('not_found')
    throw new Problem('forbidden', 'This credential has no access to that organization.')
  }

  /**
   * Finds the SSH gateway with this key. In the result, `sshRegionId: undefined` means the SSH gateway of this server.
   */
  const findSshGateway = async (keyHash: string) => {
    if (sshGatewayKeyHash !== undefined && isSameHash(keyHash, sshGatewayKeyHash)) return { sshRegionId: undefined }
    const sshRegionId = await findSshRegionId(keyHash)
    return sshRegionId === undefined ? undefined : { sshRegionId }
  }

  /** Throws 403 for the token of a user, and 401 for an unknown token. Only programs, such as gates, may call the route. */
  const refuseUser = async (request: FastifyRequest, token: string): Promise<never> => {
    await findCaller(request, await getHolder(token), undefined)
    throw new Problem('forbidden')
  }

  return async (request, { needs, givesAccess = false }) => {
    if (needs === 'public') return {}
    const token = readBearer(request.headers)
    if (token === undefined) throw new Problem('unauthorized')
    if (needs === 'proxy') {
      const hash = hashKey(token)
      if (proxyKeyHash !== undefined && isSameHash(hash, proxyKeyHash))
        return { proxyRegionId: undefined } satisfies ProxyContext
      const proxyRegionId = await findProxyRegionId(hash)
      return proxyRegionId === undefined ? await refuseUser(request, token) : ({ proxyRegionId } satisfies ProxyContext)
    }
    if (needs === 'runner') {
      const runner = await findRunner(hashKey(token))
      return runner === undefined ? await refuseUser(request, token) : { runner }
    }
    if (needs === 'collector' || needs === 'owner or collector') {
      if (collectorKeyHash !== undefined && isSameHash(hashKey(token), collectorKeyHash)) return { isCollector: true }
      if (needs === 'collector') return await refuseUser(request, token)
    }
    if (needs === 'member or ssh-gateway') {
      const asker = await findSshGateway(hashKey(token))
      if (asker !== undefined) return { asker } satisfies MemberOrSshGatewayContext
    }
    const holder = await getHolder(token)
    const named = readOrganizationHeader(request.headers)
    if (needs === 'admin') {
      // An operator may act on any organization without being a member. The organization in the path is therefore not
      // checked here.
      const caller = await getCaller(request, holder)
      checkHolds(caller, needs)
      if (givesAccess) checkDoesNotExpire(caller)
      return { user: caller.user, caller } satisfies UserContext
    }
    const inPath = (request.params as { organizationId?: string } | undefined)?.organizationId
    const caller = await getCaller(request, holder, { inPath, named })
    const context = { user: caller.user, caller } satisfies UserContext
    if (needs !== 'user') checkHolds(caller, needs)
    if (givesAccess) checkDoesNotExpire(caller)
    if (needs === 'user') return context
    const { organization } = caller
    return {
      ...context,
      organization,
      isCollector: false,
      asker: { organizationId: organization.id },
    } satisfies OrganizationContext & OwnerOrCollectorContext & MemberOrSshGatewayContext
  }
}

/**
 * Throws 403 for an API key that expires. The endpoint gives access without an expiry. Such access would last longer than the
 * key.
 */
const checkDoesNotExpire = ({ keyExpiresAt }: Caller) => {
  if (!keyExpiresAt) return
  throw new Problem(
    'forbidden',
    'This call gives access that lasts longer than your API key, which expires. Sign in, or use an API key without an expiry date.',
  )
}

const checkHolds = (caller: Caller, needs: Needs) => {
  if (holds(needs, caller)) return
  if (needs === 'admin') throw new Problem('forbidden')
  const isForOwners = needs === 'owner' || needs === 'owner or collector'
  if (!isForOwners) throw new Problem('forbidden', `This needs the permission ${needs}.`)
  if (caller.memberRole !== 'owner') {
    throw new Problem('forbidden', 'Only an owner of the organization may do that.')
  }
  throw new Problem('forbidden', 'This call needs an API key that lists every permission.')
}
