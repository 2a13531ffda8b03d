// Who may call a route (`needs`), and what the handler of the route gets about its caller.
import type { TObject, TSchema } from 'typebox'
import type { Organization } from '#src/control/people/organization.ts'
import type { User } from '#src/control/people/user.ts'
import type { Route, RouteRow } from '#src/http/route.ts'
import type { Permission } from './permissions.ts'

export const roleNeeds = {
  public: 'Anybody. No credential is needed.',
  user: 'Every user with a valid credential.',
  member: 'A member of the organization.',
  owner: 'An owner of the organization, signed in or with an API key that lists every permission.',
  admin: 'An operator of this server, signed in or with an API key that lists every permission.',
  proxy:
    'A gate (the API calls it proxy) of this server, or of a region that belongs to an organization. It shows its service key or, on the port for hosts, its certificate.',
  runner: 'A runner. It shows its service key or, on the port for hosts, its certificate.',
  collector: 'The telemetry collector. It shows its service key.',
  'owner or collector': 'An owner of the organization as above, or the telemetry collector.',
  'member or ssh-gateway':
    'A member of the organization, or an SSH gateway of this server or of a region that belongs to an organization. The gateway shows its service key.',
} as const satisfies Record<string, string>

export type Needs = keyof typeof roleNeeds | Permission

/**
 * Who calls, and in which organization. An API key belongs to one organization. For a signed-in user, the request names the
 * organization.
 */
export type Caller = {
  user: User
  organization: Organization
  memberRole: 'owner' | 'member'
  /** With an API key: the permissions that both the key and its user have in this organization. */
  permissions: ReadonlySet<Permission>
  /** The name and hash of the API key. Absent if the user is signed in with a JWT. */
  keyName?: string
  keyHash?: string
  /** When the API key expires; null: never. */
  keyExpiresAt?: Date | null
}

export type UserContext = { user: User; caller: Caller }
export type OrganizationContext = UserContext & { organization: Organization }

/** `isCertified`: the runner has shown its certificate on the port for hosts. Absent: the runner has sent its key. */
type RunnerContext = { runner: { id: string; regionId: string }; isCertified?: true }

/**
 * `proxyRegionId`: set if a region's own proxy calls. This proxy gets answers only about its region. `undefined`: a gate of this
 * server calls. This gate gets answers about all regions.
 */
export type ProxyContext = {
  proxyRegionId: string | undefined
  /** The id of the gate, as its certificate says. Absent: the gate has sent a key instead of a certificate. */
  gateId?: string
}

/**
 * `isCollector`: true if the caller is the telemetry collector, which belongs to no organization. False: the caller is an
 * owner.
 */
export type OwnerOrCollectorContext = { isCollector: boolean }

/**
 * Who asks about an SSH token: a member of an organization, or the SSH gateway of a region.
 * `undefined`: the SSH gateway of this server, which serves all regions.
 */
export type SshAsker = { organizationId: string } | { sshRegionId: string | undefined }
export type MemberOrSshGatewayContext = { asker: SshAsker }

type ContextOf<N extends Needs> = N extends 'public' | 'collector'
  ? object
  : N extends 'proxy'
    ? ProxyContext
    : N extends 'user' | 'admin'
      ? UserContext
      : N extends 'runner'
        ? RunnerContext
        : N extends 'owner or collector'
          ? OwnerOrCollectorContext
          : N extends 'member or ssh-gateway'
            ? MemberOrSshGatewayContext
            : OrganizationContext

export type ControlRoute = Route<object, Needs>

/** Defines an endpoint. `needs` decides what `run` gets: with `needs: 'runner'`, for example, the runner that calls. */
export const route = <
  N extends Needs,
  P extends TObject | undefined = undefined,
  Q extends TObject | undefined = undefined,
  B extends TSchema | undefined = undefined,
>(
  row: RouteRow<ContextOf<N>, N, P, Q, B>,
): ControlRoute => row as unknown as ControlRoute
