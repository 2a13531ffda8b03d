// Turns the form of a new sandbox into the body of `POST /sandbox`, a curl command and a call of the SDK.
import { readLabels } from './search.ts'

export type CreateForm = {
  name: string
  source: 'snapshot' | 'image' | 'dockerfile'
  snapshot: string
  image: string
  dockerfile: string
  cpu: string
  memory: string
  disk: string
  region: string
  user: string
  labels: string
  /** Environment variables, one in each line, as `KEY=value`. */
  env: string
  isPublic: boolean
  network: 'open' | 'closed' | 'addresses' | 'domains'
  allowList: string
  autoStop: string
  autoArchive: string
  autoDelete: string
  ttl: string
  /** Volumes, one in each line, as `volume:/path`. */
  volumes: string
  /** Secrets, one in each line, as `VARIABLE=secret`. */
  secrets: string
}

export const emptyForm: CreateForm = {
  name: '',
  source: 'snapshot',
  snapshot: '',
  image: '',
  dockerfile: 'FROM debian:12-slim\n',
  cpu: '',
  memory: '',
  disk: '',
  region: '',
  user: '',
  labels: '',
  env: '',
  isPublic: false,
  network: 'open',
  allowList: '',
  autoStop: '',
  autoArchive: '',
  autoDelete: '',
  ttl: '',
  volumes: '',
  secrets: '',
}

const linesOf = (text: string): string[] =>
  text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')

/** Splits each line at its first `separator`. Throws an error that quotes a line without a separator. */
const pairsOf = (text: string, separator: string, what: string): [string, string][] =>
  linesOf(text).map((line) => {
    const at = line.indexOf(separator)
    if (at < 1) throw new Error(`“${line}” is not ${what}`)
    return [line.slice(0, at).trim(), line.slice(at + 1).trim()]
  })

const numbersOf = (form: CreateForm) => {
  const fields = {
    cpu: form.cpu,
    memory: form.memory,
    disk: form.disk,
    autoStopInterval: form.autoStop,
    autoArchiveInterval: form.autoArchive,
    autoDeleteInterval: form.autoDelete,
    ttlMinutes: form.ttl,
  }
  return Object.fromEntries(
    Object.entries(fields).flatMap(([name, text]) => (text.trim() === '' ? [] : [[name, Number(text)]])),
  )
}

const networkOf = ({ network, allowList }: CreateForm) => {
  const list = allowList
    .split(/[\s,]+/)
    .filter((item) => item !== '')
    .join(',')
  if (network === 'closed') return { networkBlockAll: true }
  if (network === 'addresses') return { networkAllowList: list }
  if (network === 'domains') return { domainAllowList: list }
  return {}
}

const sourceOf = ({ source, snapshot, image, dockerfile }: CreateForm) => {
  if (source === 'snapshot') return snapshot === '' ? {} : { snapshot }
  return { buildInfo: { dockerfileContent: source === 'image' ? `FROM ${image.trim()}\n` : dockerfile } }
}

/** The body of `POST /sandbox`. Throws an error that quotes a line it cannot read. */
export const bodyOf = (form: CreateForm): Record<string, unknown> => {
  const labels = form.labels.trim() === '' ? undefined : readLabels(form.labels)
  if (form.labels.trim() !== '' && labels === undefined)
    throw new Error('Write labels as key=value, with commas between')
  const env = pairsOf(form.env, '=', 'a variable, such as KEY=value')
  const volumes = pairsOf(form.volumes, ':', 'a volume and its path, such as data:/data')
  const secrets = pairsOf(form.secrets, '=', 'a variable and its secret, such as TOKEN=my-secret')
  return {
    ...(form.name.trim() !== '' && { name: form.name.trim() }),
    ...sourceOf(form),
    ...numbersOf(form),
    ...(form.region !== '' && { target: form.region }),
    ...(form.user.trim() !== '' && { user: form.user.trim() }),
    ...(labels !== undefined && { labels }),
    ...(env.length > 0 && { env: Object.fromEntries(env) }),
    ...(form.isPublic && { public: true }),
    ...networkOf(form),
    ...(volumes.length > 0 && { volumes: volumes.map(([volumeId, mountPath]) => ({ volumeId, mountPath })) }),
    ...(secrets.length > 0 && { secrets: [Object.fromEntries(secrets)] }),
  }
}

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`

/**
 * Returns the call that creates the sandbox, as a curl command. The command names an environment variable instead of
 * the API key.
 */
export const curlOf = (apiUrl: string, body: Record<string, unknown>): string =>
  [
    `curl -X POST ${apiUrl}/sandbox \\`,
    '  -H "Authorization: Bearer $ALCOVE_API_KEY" \\',
    "  -H 'Content-Type: application/json' \\",
    `  -d ${quoted(JSON.stringify(body))}`,
  ].join('\n')

/** Fields of the request body that have another name in the SDK. */
const sdkNames: Record<string, string> = { env: 'envVars' }

/** Returns the call that creates the sandbox, as TypeScript code that uses the public SDK. */
export const sdkOf = (apiUrl: string, body: Record<string, unknown>): string => {
  const { target, buildInfo, cpu, memory, disk, ttlMinutes: _, ...rest } = body
  const resources = Object.fromEntries(Object.entries({ cpu, memory, disk }).filter(([, value]) => value !== undefined))
  const dockerfile = (buildInfo as { dockerfileContent: string } | undefined)?.dockerfileContent
  const image = dockerfile === undefined ? undefined : /^FROM (\S+)\n?$/.exec(dockerfile)?.[1]
  const given = {
    ...Object.fromEntries(Object.entries(rest).map(([name, value]) => [sdkNames[name] ?? name, value])),
    ...(image !== undefined && { image }),
    ...(Object.keys(resources).length > 0 && { resources }),
  }
  const options = Object.entries({ apiUrl, ...(typeof target === 'string' && { target }) })
    .map(([name, value]) => `${name}: ${JSON.stringify(value)}`)
    .join(', ')
  const lines = [
    "import { Daytona, Image } from '@daytona/sdk'",
    '',
    `const client = new Daytona({ ${options}, apiKey: process.env.ALCOVE_API_KEY })`,
    `const sandbox = await client.create(${JSON.stringify(given, null, 2)})`,
  ]
  if (dockerfile !== undefined && image === undefined)
    lines.splice(
      3,
      1,
      "const image = Image.fromDockerfile('Dockerfile')",
      `const sandbox = await client.create({ image, ...${JSON.stringify(given, null, 2)} })`,
    )
  else lines[0] = "import { Daytona } from '@daytona/sdk'"
  return lines.join('\n')
}
