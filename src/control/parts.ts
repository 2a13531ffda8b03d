// The parts from which the modules of control are built: made once in app.ts and passed to each module.

import type { Clock } from '#src/kit/clock.ts'
import type { Logger } from '#src/kit/log.ts'
import type { Networks } from '#src/kit/networks.ts'
import type { IdentitySettings } from './settings/identity.ts'
import type { RateLimits } from './settings/rates.ts'
import type { ProviderChoice } from './settings/webhook-provider.ts'
import type { Database } from './storage/database.ts'
import type { Encryption } from './storage/encryption.ts'

export type SshGatewaySettings = {
  keyHash: string
  host: string
  port: number
  /** The public host key of the SSH gateway, in the form that OpenSSH uses: `ssh-ed25519 AAAA…`. */
  hostKey: string
}

/** The operator's settings, which config.ts reads from the environment. */
export type Settings = {
  /** Public base URL of control, without `/api` and without a slash at the end. */
  publicUrl: string
  /** Public base URL of the gate. Toolboxes are below its path `/toolbox`. */
  proxyUrl: string
  /**
   * SHA-256, in lower-case hex, of the key with which the gate calls control, and of the key of the server's own runner.
   * Undefined: there is no gate, or no runner, on the machine of control.
   */
  proxyKeyHash: string | undefined
  runnerKeyHash: string | undefined
  /** SHA-256 of the key of the telemetry collector. Undefined: there is no collector. */
  collectorKeyHash: string | undefined
  /**
   * The server's SSH gateway: the hash of its service key, its host key and its address. Undefined: the server has no SSH
   * gateway.
   */
  sshGateway: SshGatewaySettings | undefined
  /** The address at which control listens for hosts. Undefined: machines may not join over the network. */
  hostsListen: { host: string; port: number } | undefined
  /** Whether an organization may replace its default region after it has chosen one. */
  defaultRegionMayChange: boolean
  /** Version of Alcove, from package.json. */
  version: string
  /** Name of the snapshot from which a sandbox is created if the caller names no snapshot. */
  defaultSnapshot: string
  environment: string
  /**
   * Private networks in which control may call servers that users name. Control may call servers on the public Internet
   * in any case.
   */
  privateTargets: Networks
  /** The rules of the operator for image registries, which runners follow too. */
  registries: {
    /** Registries that are called over HTTP, without TLS. */
    plain: readonly string[]
    /** Registries that may be on this machine or at a private address. */
    private: readonly string[]
    /** The only registries from which images may come. Undefined: any registry. */
    allowed: readonly string[] | undefined
  }
  /**
   * Whether single sign-on is enabled for every organization that is not personal. If false, an operator must enable it
   * for single organizations.
   */
  ssoForAll: boolean
  /**
   * Rate limits per organization. For wrong credentials and public paths: per IP address. An organization may have other limits of
   * its own.
   */
  rateLimits: RateLimits
  /** Number of reverse proxies in front of control. Control trusts only their entries in X-Forwarded-For. */
  trustedProxies: number
  /**
   * The URL of the operator's own page for users, which replaces the dashboard. Undefined if users use the dashboard of this
   * server.
   */
  dashboardUrl: string | undefined
  /** The directory of the built dashboard. Undefined if this server has no dashboard. */
  dashboardDirectory: string | undefined
  auditDays: number
  /** Minutes without a heartbeat after which a runner counts as lost. 0: only the operator can give up a runner. */
  lostAfterMinutes: number
  /** Number of hours for which samples of resource use are kept. */
  meterHours: number
  /** Maximum size in GiB of each new volume. */
  volumeGiB: number
  /** Which provider sends webhooks: control itself, or Svix. */
  webhooks: ProviderChoice
  identity: IdentitySettings
}

export type Parts = {
  database: Database
  clock: Clock
  log: Logger
  settings: Settings
  encryption: Encryption
}
