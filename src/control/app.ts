// Creates the parts of control and connects them. This file has no logic of its own.
import fastifyCors from '@fastify/cors'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { Connections } from '#src/http/connections.ts'
import { createServer, type ServerParts } from '#src/http/server.ts'
import { Problem } from '#src/problems.ts'
import { touchKey } from './api-keys/service.ts'
import { createTrail } from './audit/trail.ts'
import { createCallers } from './auth/callers.ts'
import { createGuard, type Guard } from './auth/guard.ts'
import { createOwnTokens } from './auth/own-tokens.ts'
import type { ControlRoute, Needs, OrganizationContext } from './auth/route.ts'
import { serveDashboard } from './dashboard/serve.ts'
import { endpoints } from './endpoints.ts'
import { attachEvents } from './events/socket-io.ts'
import { HostAuthority } from './hosts/authority.ts'
import { HostConnections, type Hosts } from './hosts/connections.ts'
import { createHostsGuard, hostIn, isForHosts } from './hosts/guard.ts'
import { joinRoutes } from './hosts/routes.ts'
import { followHosts, tlsOptionsOf } from './hosts/server.ts'
import { type EmbeddedIssuer, openIssuer } from './issuer/issuer.ts'
import { type Outbox, openOutbox } from './mail/outbox.ts'
import { logTransport, type MailTransport } from './mail/transport.ts'
import { createMetrics, type Metrics } from './metrics/metrics.ts'
import { openRunning, type RunningServer } from './open-running.ts'
import { createOutbound } from './outbound/outbound.ts'
import type { Parts } from './parts.ts'
import { createLimits, type Limits, limitHeaders } from './rate-limits/limits.ts'
import { SharedCounters } from './rate-limits/shared-counters.ts'
import { findRegionIdByProxyKey, findRegionIdBySshKey } from './regions/service.ts'
import { findRunnerByKey } from './runners/service.ts'
import type { RunningOptions } from './running.ts'
import { isDangling, isDeadlock, isOverdue, isUnreachable } from './storage/database.ts'
import unserved from './unserved.json' with { type: 'json' }
import { findUserById } from './users/service.ts'
import { signIn } from './users/sign-in.ts'
import { servePortal } from './webhooks/portal/serve.ts'
import { openWebhookRoom, type WebhookRoom } from './webhooks/room.ts'

export type App = {
  server: FastifyInstance
  routes: readonly ControlRoute[]
  /** The HTTP server of the port for hosts, and its routes. Undefined if machines may not join over the network. */
  hosts: (Hosts & { server: FastifyInstance; routes: readonly ControlRoute[] }) | undefined
  /** The guard that checks every call before its route runs. */
  guard: Guard
  sandboxes: RunningServer
  /** Control's own issuer. Undefined if the operator uses another issuer. */
  issuer: EmbeddedIssuer | undefined
  outbox: Outbox
  webhooks: WebhookRoom
  metrics: Metrics
  /**
   * Stops accepting requests, waits until the running requests are answered, and closes everything except the database.
   */
  close: () => Promise<void>
}

const organizationIn = (context: object | undefined): string | undefined =>
  (context as Partial<OrganizationContext> | undefined)?.organization?.id

/**
 * Returns a handler that runs `work` and maps errors of the database. 503: the database is unreachable or too slow.
 * 409: a row that the call needs was deleted meanwhile, or two transactions blocked each other.
 */
const sayWhyNot = <T extends (...args: never[]) => unknown>(work: T): T =>
  (async (...args: Parameters<T>) => {
    try {
      return await work(...args)
    } catch (error) {
      const cause = { cause: error }
      if (isUnreachable(error) || isOverdue(error)) throw new Problem('unavailable', undefined, cause)
      if (isDangling(error))
        throw new Problem('conflict', 'Something that this call needs was deleted in the meantime.', cause)
      if (isDeadlock(error))
        throw new Problem('conflict', 'Something else changed this at the same time; try again.', cause)
      throw error
    }
  }) as unknown as T

/** Pages of every origin may call control. They cannot misuse a user's sign-in: no browser sends a bearer token by itself. */
const corsForPages = {
  origin: true,
  methods: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'],
  exposedHeaders: ['X-Request-Id', 'X-Daytona-Api-Version', 'Retry-After', ...limitHeaders].join(', '),
  maxAge: 86_400,
}

const corsForOthers = { origin: false as const }

/**
 * Returns the CORS settings for a call. CORS headers have about a kilobyte, so only web pages get them.
 * Every answer has `Vary: Origin`, so that no cache gives a web page an answer without CORS headers.
 */
const corsFor = ({ headers }: FastifyRequest) => (headers.origin ? corsForPages : corsForOthers)

const answeringFor = (route: ControlRoute): ControlRoute => ({ ...route, run: sayWhyNot(route.run) })

const openHosts = async (parts: Parts): Promise<Hosts> => ({
  authority: await HostAuthority.open(parts),
  connections: await HostConnections.open(parts),
})

type HostsServerParts = Pick<ServerParts<object, Needs>, 'prefixes' | 'source' | 'log' | 'tell'> & {
  hosts: Hosts
  routes: readonly ControlRoute[]
  limits: Limits
}

/** Creates the server of the port for hosts. This server serves only the endpoints that programs of hosts call. */
const openHostsServer = async (
  parts: Parts,
  { hosts, routes: all, limits, ...ofBothServers }: HostsServerParts,
): Promise<App['hosts']> => {
  const routes = [...all.filter(isForHosts), ...joinRoutes({ ...parts, hosts })]
  const server = await createServer<object, Needs>({
    ...ofBothServers,
    routes: routes.map(answeringFor),
    guard: limits.around(sayWhyNot(createHostsGuard(hosts.connections))),
    connections: new Connections(),
    tls: tlsOptionsOf(hosts.authority),
    ownerOf: hostIn,
  })
  server.addHook('onSend', (request, reply, payload, done) => {
    limits.tell(request, reply)
    done(null, payload)
  })
  followHosts(server, { ...hosts, version: parts.settings.version })
  return { ...hosts, server, routes }
}

/** Creates control. The tables of the database must be up to date (migrated). */
export const createApp = async (
  parts: Parts,
  sandboxOptions: Partial<RunningOptions> = {},
  { transport = logTransport(parts.log) }: { transport?: MailTransport | undefined } = {},
): Promise<App> => {
  const { database, log, settings } = parts
  const own = settings.identity.issuers.length === 0 ? await openIssuer(parts) : undefined
  const ownTokens = createOwnTokens(parts)
  const callers = await createCallers({
    ...parts,
    own: own === undefined ? [ownTokens] : [own, ownTokens],
    people: { findById: findUserById, signIn },
    touchKey,
  })
  const sandboxes = await openRunning({ ...parts, callers }, sandboxOptions)
  const outbox = openOutbox({ ...parts, transport }, sandboxes.options)
  const outbound = createOutbound({ allowed: settings.privateTargets })
  const webhooks = await openWebhookRoom(parts, sandboxes.options)
  const metrics = createMetrics(parts, sandboxes.changes)
  const trail = createTrail(parts)
  const hosts = settings.hostsListen && (await openHosts(parts))
  const routes = endpoints({ ...webhooks, ...sandboxes, outbox, outbound, metrics, ownTokens, trail, hosts })
  const guard = createGuard({
    callers,
    proxyKeyHash: settings.proxyKeyHash,
    collectorKeyHash: settings.collectorKeyHash,
    sshGatewayKeyHash: settings.sshGateway?.keyHash,
    findProxyRegionId: (keyHash) => findRegionIdByProxyKey(database.keyed.sql, keyHash),
    findSshRegionId: (keyHash) => findRegionIdBySshKey(database.keyed.sql, keyHash),
    findRunner: (keyHash) => findRunnerByKey(database.keyed.sql, keyHash),
  })

  const counters = SharedCounters.of(parts)
  await counters.join()
  const limits = createLimits(settings.rateLimits, counters)
  const limitedGuard = limits.around(sayWhyNot(guard))
  const ofBothServers = {
    // Every endpoint is served twice: below `/api`, which clients use by default, and without a prefix, for clients that are
    // configured without the prefix.
    prefixes: ['/api', ''],
    source: 'DAYTONA_API',
    log,
    tell: (
      { sandboxId, sandboxIdOrName, organizationId }: Readonly<Record<string, string | undefined>>,
      context?: object,
    ) => ({
      'alcove.sandbox': sandboxId ?? sandboxIdOrName,
      'alcove.organization.id': organizationIn(context) ?? organizationId,
    }),
  }
  const server = await createServer<object, Needs>({
    ...ofBothServers,
    routes: routes.map(trail.follow).map(answeringFor),
    unserved,
    guard: (request, route) => {
      trail.meet(request, route)
      return limitedGuard(request, route)
    },
    connections: new Connections(),
    trustedProxies: settings.trustedProxies,
    ownerOf: organizationIn,
  })
  await server.register(fastifyCors, { delegator: (request, answer) => answer(null, corsFor(request)) })
  metrics.follow(server)
  await attachEvents(server, sandboxes, limits)
  await own?.attach(server, limits.anonymous)
  await servePortal(server, webhooks)
  await serveDashboard(server, parts, limits.anonymous)
  server.addHook('onSend', (request, reply, payload, done) => {
    const goOn = () => {
      limits.tell(request, reply)
      reply.header('X-Daytona-Api-Version', settings.version)
      done(null, payload)
    }
    const completing = trail.complete(request, reply)
    if (completing === undefined) goOn()
    else completing.then(goOn).catch(done)
  })
  const hostsServer = hosts && (await openHostsServer(parts, { ...ofBothServers, hosts, routes, limits }))
  if (hostsServer !== undefined) metrics.follow(hostsServer.server)
  return {
    server,
    routes,
    hosts: hostsServer,
    guard,
    sandboxes,
    issuer: own,
    outbox,
    webhooks,
    metrics,
    close: async () => {
      // The HTTP servers stop first, because the calls that they still run may need the background tasks.
      await Promise.all([server.close(), hostsServer?.server.close()])
      metrics.close()
      counters.close()
      own?.close()
      await webhooks.close()
      await sandboxes.close()
      await outbox.close()
      await trail.settled()
    },
  }
}
