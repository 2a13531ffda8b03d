// The settings of `up` that come from its environment. Everything else is a flag.
import { readFileSync } from 'node:fs'
import { openNetworksMeaning, readIpv4Network, readNetworks } from '#src/kit/networks.ts'
import { rateMeaning, readRate } from '#src/kit/rate.ts'
import { readSmtpAddress } from '#src/kit/smtp-address.ts'
import { readStoreAddress } from '#src/kit/store-address.ts'
import { type PublicUrls, readPublicUrls } from './address.ts'
import { Complaint } from './complaint.ts'

export type UpConfig = {
  /** A PostgreSQL that somebody else runs; absent: ours. */
  databaseUrl: string | undefined
  /** Public URLs of a reverse proxy; absent: clients are told where we listen. */
  publicUrls: PublicUrls | undefined
  /** What all servers of a host share: built images, compiled code. */
  cacheDirectory: string
  /** Passed on to the runner as they are, those that are set. */
  runnerSettings: Readonly<Record<string, string>>
  /** Passed on to the gate as they are, those that are set. */
  gateSettings: Readonly<Record<string, string>>
  /** Where the runner puts archives, and the key to it: for the runner, and no other program. */
  archive: Readonly<Record<string, string>>
  /** Passed on to control as they are, those that are set. */
  controlSettings: Readonly<Record<string, string>>
  /** What OpenTelemetry's variables say, passed on to every program as they are. */
  telemetry: Readonly<Record<string, string>>
  logLevel: string
  /** Most sandboxes that are kept started ahead for each snapshot. */
  mostWarm: number
  /** How many times the cpu, memory and disk of the machine may be promised; control reads it. */
  overcommit: string
  path: string
}

export const defaultCacheDirectory = '/var/cache/alcove'

const runnerSettingNames = [
  'ALCOVE_METER_SECONDS',
  'ALCOVE_DISK_MIB_PER_SECOND',
  'ALCOVE_IMAGES_DIR',
  'ALCOVE_REGISTRIES',
  'ALCOVE_PRIVATE_REGISTRIES',
  'ALCOVE_PLAIN_REGISTRIES',
  'ALCOVE_REGISTRY_AUTH',
  'ALCOVE_OPEN_NETWORKS',
] as const
const gateSettingNames = ['ALCOVE_EXECUTE_TIMEOUT_SECONDS'] as const
const controlSettingNames = [
  'ALCOVE_ALLOW_PRIVATE_TARGETS',
  'ALCOVE_AUDIT_DAYS',
  'ALCOVE_METER_HOURS',
  'ALCOVE_SMTP_URL',
  'ALCOVE_MAIL_FROM',
  'ALCOVE_COLLECTOR_KEY',
  'ALCOVE_DEFAULT_REGION_MAY_CHANGE',
  'ALCOVE_WEBHOOK_PROVIDER',
  'ALCOVE_SVIX_URL',
  'ALCOVE_SVIX_TOKEN',
  'ALCOVE_OIDC_ISSUER',
  'ALCOVE_OIDC_AUDIENCE',
  'ALCOVE_OIDC_CLIENT_ID',
  'ALCOVE_OIDC_CLOCK_SKEW_SECONDS',
  'ALCOVE_SSO_FOR_ALL',
  'ALCOVE_RATE_LIMIT_ANONYMOUS',
  'ALCOVE_RATE_LIMIT_FAILED_AUTH',
  'ALCOVE_RATE_LIMIT_AUTHENTICATED',
  'ALCOVE_RATE_LIMIT_SANDBOX_CREATE',
  'ALCOVE_RATE_LIMIT_SANDBOX_LIFECYCLE',
  'ALCOVE_TRUSTED_PROXIES',
  'ALCOVE_DASHBOARD_URL',
] as const
const webhookProviders = ['embedded', 'svix', 'none']
const defaultMostWarm = 8
/** Idle sandboxes use next to nothing of each. */
const defaultOvercommit = '64,8,8'

const levels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']

/** Throws one Complaint with everything that is wrong. */
export const readUpConfig = (env: NodeJS.ProcessEnv): UpConfig => {
  const complaints: string[] = []
  const databaseUrl = env['DATABASE_URL'] || undefined
  if (databaseUrl !== undefined && !(/^postgres(ql)?:\/\//.test(databaseUrl) && URL.canParse(databaseUrl))) {
    complaints.push('DATABASE_URL must be a URL such as postgres://user:password@host:5432/database')
  }
  const logLevel = env['ALCOVE_LOG_LEVEL'] || 'info'
  if (!levels.includes(logLevel)) complaints.push(`ALCOVE_LOG_LEVEL must be one of ${levels.join(', ')}`)
  const cacheDirectory = env['ALCOVE_CACHE_DIR'] || defaultCacheDirectory
  if (!cacheDirectory.startsWith('/')) complaints.push('ALCOVE_CACHE_DIR must be an absolute path')
  const readUrls = readPublicUrls(env)
  if (typeof readUrls === 'string') complaints.push(readUrls)
  const publicUrls = typeof readUrls === 'string' ? undefined : readUrls
  const thoseSet = (names: readonly string[]): Record<string, string> =>
    Object.fromEntries(names.flatMap((name) => (env[name] ? [[name, env[name]]] : [])))
  const runnerSettings = thoseSet(runnerSettingNames)
  const gateSettings = thoseSet(gateSettingNames)
  const telemetry = thoseSet(Object.keys(env).filter((name) => /^OTEL_[A-Z0-9_]+$/.test(name)))
  const controlSettings = thoseSet(controlSettingNames)
  const privateTargets = controlSettings['ALCOVE_ALLOW_PRIVATE_TARGETS']
  if (privateTargets !== undefined && readNetworks(privateTargets) === undefined) {
    complaints.push('ALCOVE_ALLOW_PRIVATE_TARGETS must be addresses and networks with commas between')
  }
  const openNetworks = runnerSettings['ALCOVE_OPEN_NETWORKS']?.split(/[\s,]+/).filter((network) => network !== '') ?? []
  if (openNetworks.some((network) => readIpv4Network(network) === undefined)) {
    complaints.push(`ALCOVE_OPEN_NETWORKS must be ${openNetworksMeaning}`)
  }
  for (const [name, rate] of Object.entries(controlSettings)) {
    if (!name.startsWith('ALCOVE_RATE_LIMIT_')) continue
    if (readRate(rate) === undefined) complaints.push(`${name} must be ${rateMeaning}`)
  }
  if (!/^\d?$/.test(controlSettings['ALCOVE_TRUSTED_PROXIES'] ?? '')) {
    complaints.push('ALCOVE_TRUSTED_PROXIES must be a number from 0 to 9')
  }
  const { ALCOVE_SMTP_URL: smtpUrl, ALCOVE_MAIL_FROM: from } = controlSettings
  const smtp = smtpUrl === undefined ? undefined : readSmtpAddress(smtpUrl, from)
  if (typeof smtp === 'string') complaints.push(`ALCOVE_SMTP_URL ${smtp}`)
  const webhookProvider = controlSettings['ALCOVE_WEBHOOK_PROVIDER'] ?? 'embedded'
  if (!webhookProviders.includes(webhookProvider)) {
    complaints.push(`ALCOVE_WEBHOOK_PROVIDER must be one of ${webhookProviders.join(', ')}`)
  }
  if (webhookProvider === 'svix' && controlSettings['ALCOVE_SVIX_TOKEN'] === undefined) {
    complaints.push('ALCOVE_SVIX_TOKEN must be set, as ALCOVE_WEBHOOK_PROVIDER is svix')
  }
  for (const name of ['ALCOVE_IMAGES_DIR', 'ALCOVE_REGISTRY_AUTH'])
    if (runnerSettings[name]?.startsWith('/') === false) complaints.push(`${name} must be an absolute path`)
  const auth = runnerSettings['ALCOVE_REGISTRY_AUTH']
  const wrongAuth = auth?.startsWith('/') ? whatIsWrongWithAuth(auth) : undefined
  if (wrongAuth !== undefined) complaints.push(`ALCOVE_REGISTRY_AUTH ${wrongAuth}`)
  const meter = runnerSettings['ALCOVE_METER_SECONDS'] ?? '0'
  if (!(/^\d{1,4}$/.test(meter) && Number(meter) <= 3600)) {
    complaints.push('ALCOVE_METER_SECONDS must be a whole number of seconds, at most 3600; 0: never')
  }
  if (!/^\d{1,6}$/.test(gateSettings['ALCOVE_EXECUTE_TIMEOUT_SECONDS'] ?? '0')) {
    complaints.push('ALCOVE_EXECUTE_TIMEOUT_SECONDS must be whole seconds, up to 999999; 0 disables the limit')
  }
  if (!/^\d{1,6}$/.test(runnerSettings['ALCOVE_DISK_MIB_PER_SECOND'] ?? '0')) {
    complaints.push('ALCOVE_DISK_MIB_PER_SECOND must be whole MiB per second, up to 999999; 0 disables the limit')
  }
  const archive = readArchive(env, complaints)
  const warm = env['ALCOVE_MOST_WARM'] || String(defaultMostWarm)
  const overcommit = env['ALCOVE_OVERCOMMIT'] || defaultOvercommit
  if (!/^\d{1,6}(?:\.\d+)?(?:,\d{1,6}(?:\.\d+)?){2}$/.test(overcommit)) {
    complaints.push('ALCOVE_OVERCOMMIT must be three numbers with commas between, such as 64,8,8')
  }
  if (!/^\d{1,4}$/.test(warm)) complaints.push('ALCOVE_MOST_WARM must be a whole number')
  if (complaints.length > 0) throw new Complaint(complaints.join('\n'))
  // Root's PATH on some systems leaves the sbin directories out; nft, ip and mkfs live there.
  const path = [...new Set([...(env['PATH'] ?? '').split(':'), '/usr/sbin', '/usr/bin', '/sbin', '/bin'])]
  return {
    databaseUrl,
    publicUrls,
    cacheDirectory,
    runnerSettings,
    gateSettings,
    archive,
    controlSettings,
    telemetry,
    logLevel,
    mostWarm: Number(warm),
    overcommit,
    path: path.filter(Boolean).join(':'),
  }
}

/** It is read only when an image is pulled; then every pull would fail, and whoever asked for it could not know why. */
const whatIsWrongWithAuth = (path: string): string | undefined => {
  try {
    const auth: unknown = JSON.parse(readFileSync(path, 'utf8'))
    if (typeof auth === 'object' && auth !== null && !Array.isArray(auth)) return undefined
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code !== undefined) return `must be a file that can be read; ${path} is none (${code})`
  }
  // What the parser says shows what stands there, which is credentials.
  return `must be a file as containers-auth.json(5) describes; ${path} is no JSON object`
}

/** What is set and read by nobody, such as a name with a typing error. */
export const listUnknownSettings = (env: NodeJS.ProcessEnv): string[] => {
  // A runner that joins reads this one.
  const read = new Set(['ALCOVE_RUNNER_KEY'])
  // Asked for with nothing set, every name is read, and nothing is wrong.
  readUpConfig(new Proxy({}, { get: (_, name) => void read.add(String(name)) }))
  return Object.keys(env).filter((name) => name.startsWith('ALCOVE_') && !read.has(name))
}

/** Reads the archive store as the runner will, so that mistakes are told before anything starts. */
const readArchive = (env: NodeJS.ProcessEnv, complaints: string[]): Record<string, string> => {
  const names = ['ALCOVE_ARCHIVE_STORE', 'ALCOVE_ARCHIVE_S3_KEY', 'ALCOVE_ARCHIVE_S3_SECRET'] as const
  const [address, accessKey, secret] = names.map((name) => env[name] || undefined)
  if (address === undefined) return {}
  const store = readStoreAddress({ address, accessKey, secret })
  if (typeof store === 'string') complaints.push(`ALCOVE_ARCHIVE_STORE ${store}`)
  const told = typeof store !== 'string' && store.kind === 's3' ? names : names.slice(0, 1)
  return Object.fromEntries(told.map((name) => [name, env[name] ?? '']))
}

/** What a runner that joins shows to its server; not on the command line, where every process of the host could read it. */
export const readRunnerToken = (env: NodeJS.ProcessEnv): string | undefined => env['ALCOVE_RUNNER_KEY'] || undefined
