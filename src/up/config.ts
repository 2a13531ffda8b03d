// Reads the settings of `up` from its environment variables. src/cli/command-line.ts reads the options of its command
// line.
import { readFileSync } from 'node:fs'
import { openNetworksMeaning, readIpv4Network, readNetworks } from '#src/kit/networks.ts'
import { rateMeaning, readRate } from '#src/kit/rate.ts'
import { readSmtpAddress } from '#src/kit/smtp-address.ts'
import { readSshUrl, sshUrlMeaning } from '#src/kit/ssh-url.ts'
import { readStoreAddress } from '#src/kit/store-address.ts'
import { type PublicUrls, readPublicUrls, type SshSettings } from './address.ts'
import { Complaint } from './complaint.ts'

export type UpConfig = {
  /** URL of an external PostgreSQL. Undefined: the server uses its embedded PostgreSQL. */
  databaseUrl: string | undefined
  /** The URLs of a reverse proxy. Undefined: clients call the addresses on which the programs listen. */
  publicUrls: PublicUrls | undefined
  ssh: SshSettings
  /**
   * Directory of the cache that all servers of this host share. The cache contains the built dashboard, built images
   * and compiled code.
   */
  cacheDirectory: string
  /** Settings that are passed unchanged to the runner, if they are set. */
  runnerSettings: Readonly<Record<string, string>>
  /** Settings that are passed unchanged to the gate, if they are set. */
  gateSettings: Readonly<Record<string, string>>
  /** The settings for the archive store: its address and its access key. Only the runner gets these settings. */
  archive: Readonly<Record<string, string>>
  /** Settings that are passed unchanged to control, if they are set. */
  controlSettings: Readonly<Record<string, string>>
  /** The environment variables of OpenTelemetry. Every program gets them unchanged. */
  telemetry: Readonly<Record<string, string>>
  logLevel: string
  /** Maximum number of warm sandboxes for each snapshot. */
  mostWarm: number
  /** Three factors, as the text that control reads: how many times a host's CPU, memory and disk may be given to sandboxes. */
  overcommit: string
  path: string
}

export const defaultCacheDirectory = '/var/cache/alcove'

const runnerSettingNames = [
  'ALCOVE_METER_SECONDS',
  'ALCOVE_DISK_MIB_PER_SECOND',
  'ALCOVE_SUDO',
  'ALCOVE_IMAGES_DIR',
  'ALCOVE_VOLUMES_DIR',
  'ALCOVE_REGISTRIES',
  'ALCOVE_PRIVATE_REGISTRIES',
  'ALCOVE_PLAIN_REGISTRIES',
  'ALCOVE_REGISTRY_MIRRORS',
  'ALCOVE_REGISTRY_AUTH',
  'ALCOVE_OPEN_NETWORKS',
] as const
const gateSettingNames = ['ALCOVE_EXECUTE_TIMEOUT_SECONDS'] as const
const controlSettingNames = [
  'ALCOVE_ALLOW_PRIVATE_TARGETS',
  'ALCOVE_AUDIT_DAYS',
  'ALCOVE_LOST_AFTER_MINUTES',
  'ALCOVE_METER_HOURS',
  'ALCOVE_VOLUME_GIB',
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
export const defaultMostWarm = 8
/**
 * How many times a host's CPU, memory and disk may be given to sandboxes. The factors are high, because idle sandboxes use little.
 */
export const defaultOvercommit = '64,8,8'

const levels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']

/** Reads the settings of `up`. If settings are wrong, throws one error for the operator that lists them all. */
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
  const ssh = readSsh(env, complaints)
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
  for (const name of ['ALCOVE_IMAGES_DIR', 'ALCOVE_VOLUMES_DIR', 'ALCOVE_REGISTRY_AUTH'])
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
  if (!['true', 'false'].includes(runnerSettings['ALCOVE_SUDO'] ?? 'true')) {
    complaints.push('ALCOVE_SUDO must be true or false')
  }
  if (!/^([1-9]\d{0,5})?$/.test(controlSettings['ALCOVE_VOLUME_GIB'] ?? '')) {
    complaints.push('ALCOVE_VOLUME_GIB must be whole GiB, 1 to 999999')
  }
  const archive = readArchive(env, complaints)
  const warm = env['ALCOVE_MOST_WARM'] || String(defaultMostWarm)
  const overcommit = env['ALCOVE_OVERCOMMIT'] || defaultOvercommit
  if (!/^\d{1,6}(?:\.\d+)?(?:,\d{1,6}(?:\.\d+)?){2}$/.test(overcommit)) {
    complaints.push('ALCOVE_OVERCOMMIT must be three numbers with commas between, such as 64,8,8')
  }
  if (!/^\d{1,4}$/.test(warm)) complaints.push('ALCOVE_MOST_WARM must be a whole number')
  if (complaints.length > 0) throw new Complaint(complaints.join('\n'))
  // On some systems, the PATH of root does not contain the directories of nft, ip and mkfs. So add these directories.
  const path = [...new Set([...(env['PATH'] ?? '').split(':'), '/usr/sbin', '/usr/bin', '/sbin', '/bin'])]
  return {
    databaseUrl,
    publicUrls,
    ssh,
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

/**
 * Returns what is wrong with the file of registry credentials. Without this check at the start of `up`, every pull would fail
 * later, and callers would not see the reason.
 */
const whatIsWrongWithAuth = (path: string): string | undefined => {
  try {
    const auth: unknown = JSON.parse(readFileSync(path, 'utf8'))
    if (typeof auth === 'object' && auth !== null && !Array.isArray(auth)) return undefined
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code !== undefined) return `must be a readable file; ${path} cannot be read (${code})`
  }
  // Do not show the error of the JSON parser: it would quote the file, which contains credentials.
  return `must be a file in the format of containers-auth.json(5); ${path} is not a JSON object`
}

/** Returns the names of variables that begin with ALCOVE_ but that no program reads. They may be misspelled settings. */
export const listUnknownSettings = (env: NodeJS.ProcessEnv): string[] => {
  // `readUpConfig` does not read ALCOVE_RUNNER_KEY, because only a runner that joins a server uses this setting.
  const read = new Set(['ALCOVE_RUNNER_KEY'])
  // Call `readUpConfig` with an empty environment that records each name that the function reads. Without values, no setting is
  // wrong.
  readUpConfig(new Proxy({}, { get: (_, name) => void read.add(String(name)) }))
  return Object.keys(env).filter((name) => name.startsWith('ALCOVE_') && !read.has(name))
}

/** Reads where the SSH gateway listens, and where clients reach the SSH gateway. */
const readSsh = (env: NodeJS.ProcessEnv, complaints: string[]): SshSettings => {
  const listen = env['ALCOVE_SSH_LISTEN'] || undefined
  const publicUrl = env['ALCOVE_SSH_URL'] || undefined
  if (publicUrl !== undefined && readSshUrl(publicUrl) === undefined)
    complaints.push(`ALCOVE_SSH_URL must be ${sshUrlMeaning}`)
  if (listen === 'off') return { listen }
  const address = listen === undefined ? undefined : readSshUrl(`ssh://${listen}`)
  if (listen !== undefined && (address === undefined || !/:\d+$/.test(listen))) {
    complaints.push('ALCOVE_SSH_LISTEN must be host:port, such as 0.0.0.0:2222, or off')
  }
  return { ...(address && { listen: address }), ...(publicUrl && { publicUrl }) }
}

/** Reads the settings of the archive store as the runner does, so that errors appear before any program starts. */
const readArchive = (env: NodeJS.ProcessEnv, complaints: string[]): Record<string, string> => {
  const names = ['ALCOVE_ARCHIVE_STORE', 'ALCOVE_ARCHIVE_S3_KEY', 'ALCOVE_ARCHIVE_S3_SECRET'] as const
  const [address, accessKey, secret] = names.map((name) => env[name] || undefined)
  if (address === undefined) return {}
  const store = readStoreAddress({ address, accessKey, secret })
  if (typeof store === 'string') complaints.push(`ALCOVE_ARCHIVE_STORE ${store}`)
  const told = typeof store !== 'string' && store.kind === 's3' ? names : names.slice(0, 1)
  return Object.fromEntries(told.map((name) => [name, env[name] ?? '']))
}

/**
 * Reads the key with which a runner joins a server. The key is no command-line option, because other processes can read command
 * lines.
 */
export const readRunnerToken = (env: NodeJS.ProcessEnv): string | undefined => env['ALCOVE_RUNNER_KEY'] || undefined
