// What the rooms of control are built from, made once in app.ts and handed to each room.

import type { Clock } from '#src/kit/clock.ts'
import type { Logger } from '#src/kit/log.ts'
import type { Networks } from '#src/kit/networks.ts'
import type { IdentitySettings } from './settings/identity.ts'
import type { RateLimits } from './settings/rates.ts'
import type { ProviderChoice } from './settings/webhook-provider.ts'
import type { Database } from './storage/database.ts'
import type { Encryption } from './storage/encryption.ts'

/** What the operator decides; config.ts reads it from the environment. */
export type Settings = {
  /** Where clients reach us, without `/api` and without a slash at the end. */
  publicUrl: string
  /** Where clients reach the gate; toolboxes are below `/toolbox`. */
  proxyUrl: string
  /** sha256 of service keys, as lower hex; the keys themselves are not kept. */
  proxyKeyHash: string
  runnerKeyHash: string
  /** Key hash of the collector of telemetry; absent: there is none. */
  collectorKeyHash: string | undefined
  /** Whether an organization that has a default region may choose another. */
  defaultRegionMayChange: boolean
  /** Version of Alcove, from package.json. */
  version: string
  /** The snapshot of a sandbox that names none. */
  defaultSnapshot: string
  environment: string
  /** What may be called for others besides the public Internet. */
  privateTargets: Networks
  /** Every organization that people share may have single sign-on, not only those that an operator enables it for. */
  ssoForAll: boolean
  /** Rate limits of the whole server; an organization may have its own. */
  rateLimits: RateLimits
  /** How many reverse proxies stand in front of control. */
  trustedProxies: number
  /** Where people are sent when they have signed in, or could not; without one they are answered in JSON. */
  dashboardUrl: string | undefined
  /** How long the audit log is kept. */
  auditDays: number
  /** How long it is kept what sandboxes used. */
  meterHours: number
  /** Who sends webhooks. */
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
