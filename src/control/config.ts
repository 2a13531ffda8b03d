// Reads the settings of control, once at its start. All invalid settings are reported together, and no message shows a
// secret.

import { type Networks, noNetworks, readNetworks } from '#src/kit/networks.ts'
import { rateMeaning, readRate } from '#src/kit/rate.ts'
import { canonicalRegistry } from '#src/kit/registry-address.ts'
import { namesIn, readSettings } from '#src/kit/settings.ts'
import { readSmtpAddress, type SmtpAddress } from '#src/kit/smtp-address.ts'
import { readSshUrl, sshUrlMeaning } from '#src/kit/ssh-url.ts'
import { readTelemetry, type TelemetrySettings } from '#src/kit/telemetry/settings.ts'
import { version } from '#src/kit/version.ts'
import { hashKey } from './auth/secret.ts'
import type { Settings, SshGatewaySettings } from './parts.ts'
import type { Overcommit } from './runners/placement.ts'
import { readIdentity } from './settings/identity.ts'
import { type Bucket, buckets, type RateLimits } from './settings/rates.ts'
import { readProviderChoice } from './settings/webhook-provider.ts'
import { createEncryption, type Encryption, readEncryptionKey } from './storage/encryption.ts'

export type ControlConfig = {
  databaseUrl: string
  listen: { host: string; port: number }
  /** API key of the first administrator, whom control creates if there are no users. A new value replaces the former first key. */
  firstKey: string | undefined
  mostWarm: number
  overcommit: Overcommit
  encryption: Encryption
  /** The address of the mail server. Absent: mail is written to the log instead. */
  smtp: SmtpAddress | undefined
  settings: Settings
  telemetry: TelemetrySettings
}

const overcommitMeaning = 'factors by which the CPU, memory and disk of a runner may be overcommitted, such as 64,8,8'

const readOvercommit = (given: string, complain: (sentence: string) => void): Overcommit => {
  const [cpu = 0, memory = 0, disk = 0, ...more] = given.split(',').map(Number)
  const isSound = [cpu, memory, disk].every((times) => times >= 1 && times <= 1_000_000) && more.length === 0
  if (given !== '' && !isSound) complain(`ALCOVE_OVERCOMMIT is not usable: ${overcommitMeaning}`)
  return { cpu, memory, disk }
}

const encryptionMeaning = '32 bytes as base64, with which control encrypts secrets in the database'

const readEncryption = (current: string, older: string, complain: (sentence: string) => void): Encryption => {
  const read = (name: string, text: string) => {
    const key = readEncryptionKey(text)
    if (key === undefined) complain(`${name} is not usable: ${encryptionMeaning}`)
    return key ?? Buffer.alloc(32)
  }
  const olderKeys = older
    .split(',')
    .flatMap((text) => (text === '' ? [] : [read('ALCOVE_OLDER_ENCRYPTION_KEYS', text)]))
  // A missing ALCOVE_ENCRYPTION_KEY is among the errors already. A key of zeros replaces it, so that errors in other settings
  // are found too.
  return createEncryption([current === '' ? Buffer.alloc(32) : read('ALCOVE_ENCRYPTION_KEY', current), ...olderKeys])
}

const privateTargetsMeaning = 'addresses and networks with commas between, such as 10.1.0.0/16,fd00::/8'

const readPrivateTargets = (given: string | undefined, complain: (sentence: string) => void): Networks => {
  const networks = given === undefined ? noNetworks : readNetworks(given)
  if (networks === undefined) complain(`ALCOVE_ALLOW_PRIVATE_TARGETS is not usable: ${privateTargetsMeaning}`)
  return networks ?? noNetworks
}

const readLostAfterMinutes = (given: string, complain: (sentence: string) => void): number => {
  if (/^\d{1,5}$/.test(given)) return Number(given)
  complain('ALCOVE_LOST_AFTER_MINUTES is not usable: minutes of silence after which a host is given up, 0 to 99999')
  return 10
}

const readAuditDays = (given: string, complain: (sentence: string) => void): number => {
  const days = Number(given)
  if (/^\d{1,4}$/.test(given) && days >= 1) return days
  complain('ALCOVE_AUDIT_DAYS is not usable: how many days the audit log is kept, 1 to 9999')
  return 90
}

const readMeterHours = (given: string, complain: (sentence: string) => void): number => {
  const hours = Number(given)
  if (/^\d{1,3}$/.test(given) && hours >= 1) return hours
  complain('ALCOVE_METER_HOURS is not usable: how many hours it is kept what sandboxes used, 1 to 999')
  return 48
}

const readVolumeGiB = (given: string, complain: (sentence: string) => void): number => {
  const size = Number(given)
  if (/^\d{1,6}$/.test(given) && size >= 1) return size
  complain('ALCOVE_VOLUME_GIB is not usable: the limit of each new volume in GiB, 1 to 999999')
  return 10
}

const readSmtp = (
  url: string | undefined,
  from: string | undefined,
  complain: (sentence: string) => void,
): SmtpAddress | undefined => {
  if (url === undefined) return undefined
  const smtp = readSmtpAddress(url, from)
  if (typeof smtp !== 'string') return smtp
  complain(`ALCOVE_SMTP_URL ${smtp}`)
  return undefined
}

/**
 * Minimum characters of the telemetry collector's key. With this key, the collector reads the telemetry credentials of every
 * organization.
 */
const leastKeyLength = 32

const readCollectorKey = (key: string | undefined, complain: (sentence: string) => void): string | undefined => {
  if (key !== undefined && key.length < leastKeyLength)
    complain(`ALCOVE_COLLECTOR_KEY is not usable: it must have ${leastKeyLength} characters or more`)
  return key === undefined ? undefined : hashKey(key)
}

/**
 * Reads the settings of this server's SSH gateway. With `key`, the gateway asks whether an SSH token is valid.
 * The key alone gives access to no sandbox.
 */
const readSshGateway = (
  key: string | undefined,
  url: string | undefined,
  hostKey: string | undefined,
  complain: (sentence: string) => void,
): SshGatewaySettings | undefined => {
  if (key === undefined) return undefined
  const address = readSshUrl(url ?? '')
  if (address === undefined) complain(`ALCOVE_SSH_URL is not usable: ${sshUrlMeaning}`)
  return { keyHash: hashKey(key), ...(address ?? { host: '', port: 0 }), hostKey: hostKey ?? '' }
}

const readSwitch = (
  name: string,
  optional: (name: string) => string | undefined,
  complain: (sentence: string) => void,
): boolean => {
  const value = optional(name) ?? 'false'
  if (value !== 'true' && value !== 'false') complain(`${name} is not usable: it must be true or false`)
  return value === 'true'
}

const rateSettings = {
  anonymous: 'ALCOVE_RATE_LIMIT_ANONYMOUS',
  'failed-auth': 'ALCOVE_RATE_LIMIT_FAILED_AUTH',
  authenticated: 'ALCOVE_RATE_LIMIT_AUTHENTICATED',
  'sandbox-create': 'ALCOVE_RATE_LIMIT_SANDBOX_CREATE',
  'sandbox-lifecycle': 'ALCOVE_RATE_LIMIT_SANDBOX_LIFECYCLE',
} as const satisfies Record<Bucket, string>

const readRateLimits = (
  optional: (name: string) => string | undefined,
  complain: (sentence: string) => void,
): RateLimits =>
  Object.fromEntries(
    buckets.flatMap((bucket) => {
      const name = rateSettings[bucket]
      const given = optional(name)
      const rate = given === undefined ? undefined : readRate(given)
      if (given !== undefined && rate === undefined) complain(`${name} is not usable: ${rateMeaning}`)
      return rate === undefined ? [] : [[bucket, rate]]
    }),
  )

const readTrustedProxies = (given: string, complain: (sentence: string) => void): number => {
  if (/^\d$/.test(given)) return Number(given)
  complain('ALCOVE_TRUSTED_PROXIES is not usable: how many reverse proxies stand in front of control, 0 to 9')
  return 0
}

const readPage = (
  name: string,
  optional: (name: string) => string | undefined,
  complain: (sentence: string) => void,
): string | undefined => {
  const given = optional(name)
  if (given !== undefined && !(URL.canParse(given) && /^https?:$/.test(new URL(given).protocol))) {
    complain(`${name} is not usable: it must be a URL that begins with https:// or http://`)
  }
  return given
}

const hashOf = (key: string | undefined) => (key === undefined ? undefined : hashKey(key))

const registriesIn = (list: string | undefined): string[] => namesIn(list).map(canonicalRegistry)

const origin = (url: URL) => url.href.replace(/\/+$/, '')

export const loadConfig = (environment: NodeJS.ProcessEnv): ControlConfig =>
  readSettings(environment, ({ address, complain, optional, text, url, whole }) => ({
    databaseUrl: url('ALCOVE_DATABASE_URL', 'URL of the PostgreSQL database; ?host=/directory selects a Unix socket')
      .href,
    listen: address('ALCOVE_LISTEN', 'host:port that control serves on'),
    firstKey: optional('ALCOVE_FIRST_KEY'),
    mostWarm: whole(
      'ALCOVE_MOST_WARM',
      'maximum number of sandboxes of each snapshot that control starts in advance; 0: none',
    ),
    overcommit: readOvercommit(text('ALCOVE_OVERCOMMIT', overcommitMeaning), complain),
    encryption: readEncryption(
      text('ALCOVE_ENCRYPTION_KEY', encryptionMeaning),
      optional('ALCOVE_OLDER_ENCRYPTION_KEYS') ?? '',
      complain,
    ),
    smtp: readSmtp(optional('ALCOVE_SMTP_URL'), optional('ALCOVE_MAIL_FROM'), complain),
    telemetry: readTelemetry(environment, 'alcove-control'),
    settings: {
      publicUrl: origin(url('ALCOVE_PUBLIC_URL', 'URL at which clients reach control; the API is below /api')),
      proxyUrl: origin(
        url(
          'ALCOVE_PROXY_URL',
          'URL at which clients reach the gate (formerly called the proxy); toolboxes are below /toolbox',
        ),
      ),
      proxyKeyHash: hashOf(optional('ALCOVE_PROXY_KEY')),
      runnerKeyHash: hashOf(optional('ALCOVE_RUNNER_KEY')),
      collectorKeyHash: readCollectorKey(optional('ALCOVE_COLLECTOR_KEY'), complain),
      sshGateway: readSshGateway(
        optional('ALCOVE_SSH_GATEWAY_KEY'),
        optional('ALCOVE_SSH_URL'),
        optional('ALCOVE_SSH_PUBLIC_HOST_KEY'),
        complain,
      ),
      hostsListen:
        optional('ALCOVE_HOSTS_LISTEN') === undefined
          ? undefined
          : address('ALCOVE_HOSTS_LISTEN', 'host:port at which control listens for hosts of other machines'),
      defaultRegionMayChange: readSwitch('ALCOVE_DEFAULT_REGION_MAY_CHANGE', optional, complain),
      version,
      defaultSnapshot: 'default',
      environment: 'production',
      dashboardUrl: readPage('ALCOVE_DASHBOARD_URL', optional, complain),
      dashboardDirectory: optional('ALCOVE_DASHBOARD_DIR'),
      ssoForAll: readSwitch('ALCOVE_SSO_FOR_ALL', optional, complain),
      privateTargets: readPrivateTargets(optional('ALCOVE_ALLOW_PRIVATE_TARGETS'), complain),
      registries: {
        plain: registriesIn(optional('ALCOVE_PLAIN_REGISTRIES')),
        private: registriesIn(optional('ALCOVE_PRIVATE_REGISTRIES')),
        allowed: optional('ALCOVE_REGISTRIES') === undefined ? undefined : registriesIn(optional('ALCOVE_REGISTRIES')),
      },
      identity: readIdentity(optional, complain),
      rateLimits: readRateLimits(optional, complain),
      trustedProxies: readTrustedProxies(optional('ALCOVE_TRUSTED_PROXIES') ?? '0', complain),
      auditDays: readAuditDays(optional('ALCOVE_AUDIT_DAYS') ?? '90', complain),
      lostAfterMinutes: readLostAfterMinutes(optional('ALCOVE_LOST_AFTER_MINUTES') ?? '10', complain),
      meterHours: readMeterHours(optional('ALCOVE_METER_HOURS') ?? '48', complain),
      volumeGiB: readVolumeGiB(optional('ALCOVE_VOLUME_GIB') ?? '10', complain),
      webhooks: readProviderChoice(
        {
          provider: optional('ALCOVE_WEBHOOK_PROVIDER'),
          url: optional('ALCOVE_SVIX_URL'),
          token: optional('ALCOVE_SVIX_TOKEN'),
        },
        complain,
      ),
    },
  }))
