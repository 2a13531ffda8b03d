// What the operator says to control, read once. All complaints come at once.
import packageJson from '../../package.json' with { type: 'json' }
import { hashKey } from './auth/secret.ts'
import type { Settings } from './parts.ts'

/** Meaning, unit and default of each; the reference page is printed from this. */
export const environment = {
  ALCOVE_DATABASE_URL: { meaning: 'The PostgreSQL database; `?host=/directory` names a unix socket.', standard: null },
  ALCOVE_LISTEN: { meaning: 'Where to listen, `host:port`.', standard: null },
  ALCOVE_PUBLIC_URL: { meaning: 'Where clients reach this server; the API is below `/api`.', standard: null },
  ALCOVE_PROXY_URL: { meaning: 'Where clients reach the proxy; toolboxes are below `/toolbox`.', standard: null },
  ALCOVE_PROXY_KEY: { meaning: 'The service key of the proxy.', standard: null },
  ALCOVE_RUNNER_KEY: { meaning: 'The service key of the local runner.', standard: null },
  ALCOVE_FIRST_KEY: { meaning: 'API key of the first administrator, made while there is no user.', standard: 'none' },
  ALCOVE_LOG_LEVEL: { meaning: 'trace, debug, info, warn, error, fatal or silent.', standard: 'info' },
} as const satisfies Record<string, { meaning: string; standard: string | null }>

export type Config = {
  databaseUrl: string
  host: string
  port: number
  firstKey: string | undefined
  logLevel: string
  settings: Settings
}

const levels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']

export const readConfig = (env: Record<string, string | undefined>): Config => {
  const complaints: string[] = []
  const get = (name: keyof typeof environment) => {
    const value = env[name]
    if (value === undefined || value === '') complaints.push(`${name} is missing`)
    return value ?? ''
  }
  const getUrl = (name: keyof typeof environment, protocols: readonly string[]) => {
    const text = get(name)
    if (text !== '' && !protocols.includes(URL.parse(text)?.protocol ?? '')) complaints.push(`${name} is not a URL`)
    return text.replace(/\/+$/, '')
  }
  const getKey = (name: keyof typeof environment) => {
    const key = get(name)
    if (key !== '' && key.length < 16) complaints.push(`${name} is too short to be a secret`)
    return key
  }

  const [, host = '', portText = ''] = /^(.+):(\d{1,5})$/.exec(get('ALCOVE_LISTEN')) ?? []
  const port = Number(portText)
  if (env['ALCOVE_LISTEN'] && (host === '' || port > 65_535)) complaints.push('ALCOVE_LISTEN is not host:port')
  const logLevel = env['ALCOVE_LOG_LEVEL'] || environment.ALCOVE_LOG_LEVEL.standard
  if (!levels.includes(logLevel)) complaints.push(`ALCOVE_LOG_LEVEL is none of ${levels.join(', ')}`)
  const firstKey = env['ALCOVE_FIRST_KEY'] || undefined
  if (firstKey !== undefined && !/^dtn_[0-9a-f]{64}$/.test(firstKey)) {
    complaints.push('ALCOVE_FIRST_KEY is not dtn_ and 64 lower hex digits')
  }

  const config: Config = {
    databaseUrl: getUrl('ALCOVE_DATABASE_URL', ['postgres:', 'postgresql:']),
    host: host.replace(/^\[(.*)\]$/, '$1'),
    port,
    firstKey,
    logLevel,
    settings: {
      publicUrl: getUrl('ALCOVE_PUBLIC_URL', ['http:', 'https:']),
      proxyUrl: getUrl('ALCOVE_PROXY_URL', ['http:', 'https:']),
      proxyKeyHash: hashKey(getKey('ALCOVE_PROXY_KEY')),
      runnerKeyHash: hashKey(getKey('ALCOVE_RUNNER_KEY')),
      version: packageJson.version,
      defaultSnapshot: 'default',
      environment: 'production',
    },
  }
  if (complaints.length > 0) throw new Error(`control cannot start: ${complaints.join('; ')}`)
  return config
}
