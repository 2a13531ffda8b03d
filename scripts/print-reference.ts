// Prints docs/reference/ from the tables of the code: `node scripts/print-reference.ts`, or with `--check` says what is
// not true any more. Nobody edits those pages by hand.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { TSchema } from 'typebox'
import { globalRoles } from '#src/control/auth/global-roles.ts'
import { allPermissions, type Permission, permissions } from '#src/control/auth/permissions.ts'
import { answerTo, decidedInside, type GridCaller, otherDoors } from '#src/control/auth/policy.ts'
import { type ControlRoute, roleNeeds } from '#src/control/auth/route.ts'
import { loadConfig as loadControl } from '#src/control/config.ts'
import { type EndpointParts, endpoints } from '#src/control/endpoints.ts'
import {
  alreadyDone,
  forkableStates,
  moves,
  refusals,
  settlements,
  stateRows,
  statesAwaitingImage,
} from '#src/control/sandboxes/lifecycle.ts'
import { reportable } from '#src/control/sandboxes/schemas.ts'
import { rateMeaning } from '#src/kit/rate.ts'
import { readTelemetry } from '#src/kit/telemetry/settings.ts'
import { type ProblemCode, problems, wordsOf } from '#src/problems.ts'
import { loadConfig as loadProxy } from '#src/proxy/config.ts'
import { loadConfig as loadRunner } from '#src/runner/config.ts'
import { toolboxEndpoints } from '#src/toolbox/endpoints.ts'
import type { ToolboxNeeds } from '#src/toolbox/sandbox.ts'
import { readUpConfig } from '#src/up/config.ts'
import { type SandboxState, sandboxStates } from '#src/wire/sandbox-state.ts'

const directory = resolve(import.meta.dirname, '../docs/reference')
const printedBy = '<!-- Printed by scripts/print-reference.ts from the code. -->'

const table = (head: readonly string[], rows: readonly (readonly string[])[]) =>
  [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`).join('\n')

const page = (title: string, ...parts: string[]) => `${[`# ${title}`, printedBy, ...parts].join('\n\n')}\n`

const code = (text: string) => `\`${text}\``

// --- endpoints

type Shape = TSchema & {
  type?: string
  properties?: Record<string, Shape>
  required?: string[]
  items?: Shape
  anyOf?: Shape[]
  enum?: unknown[]
  const?: unknown
  minimum?: number
  maximum?: number
  maxLength?: number
  default?: unknown
}

const typeOf = (shape: Shape): string => {
  if (shape.enum !== undefined) return shape.enum.length > 6 ? 'one word of a list' : shape.enum.map(String).join(', ')
  if (shape.const !== undefined) return String(shape.const)
  if (shape.anyOf !== undefined) return shape.anyOf.map(typeOf).join(' or ')
  if (shape.type === 'array') return `list of ${typeOf(shape.items ?? ({} as Shape))}`
  return shape.type ?? 'anything'
}

const boundsOf = ({ minimum, maximum, maxLength, default: standard }: Shape): string =>
  [
    minimum === undefined ? '' : `≥ ${minimum}`,
    maximum === undefined ? '' : `≤ ${maximum}`,
    maxLength === undefined ? '' : `≤ ${maxLength} characters`,
    standard === undefined ? '' : `default ${JSON.stringify(standard)}`,
  ]
    .filter(Boolean)
    .join(', ')

const fieldRows = (part: string, schema: TSchema | undefined) => {
  const { properties = {}, required = [] } = (schema ?? {}) as Shape
  return Object.entries(properties).map(([name, shape]) => [
    part,
    `${code(name)}${required.includes(name) ? ' \\*' : ''}`,
    typeOf(shape).replaceAll('|', '\\|'),
    boundsOf(shape),
  ])
}

/** What a page says of a row, whichever program serves it. */
type Described = Pick<ControlRoute, 'method' | 'path' | 'summary' | 'query' | 'body'> & {
  replies: ControlRoute['replies']
}

const braced = (path: string) => path.replaceAll(/:(\w+)/g, '{$1}')

const statusesOf = ({ replies }: Described) => Object.keys(replies).join(', ')

const describe = (route: Described, sentences: string, answers: string[][] = []) => {
  const fields = [...fieldRows('query', route.query), ...fieldRows('body', route.body), ...answers]
  return [
    `### ${route.method} ${braced(route.path)}`,
    route.summary,
    sentences,
    ...(fields.length === 0 ? [] : [table(['in', 'field', 'type', 'bounds'], fields)]),
  ].join('\n\n')
}

/** Routes are built from parts that only running uses, so none are needed to describe them. */
const listEndpoints = (): ControlRoute[] => {
  const absent: unknown = new Proxy(() => absent, { get: () => absent, apply: () => absent })
  return endpoints(absent as EndpointParts)
}

const endpointsPage = () => {
  const routes = listEndpoints()
  return page(
    'Endpoints of control',
    'All are below `{base_url}`, which ends in `/api`. A field with \\* must be there. What a word of `needs` means is in [permissions](permissions.md), what can go wrong in [errors](errors.md).',
    table(
      ['method', 'path', 'needs', 'what it does'],
      routes.map((route) => [route.method, code(braced(route.path)), code(route.needs), route.summary]),
    ),
    ...routes.map((route) => describe(route, `Needs ${code(route.needs)}. Answers ${statusesOf(route)}.`)),
  )
}

// --- toolbox

type ToolboxRoute = Described & Pick<(typeof toolboxEndpoints)[number], 'needs' | 'streamsBody' | 'socket'>

/** Of what stands for itself, or for each in a list. */
const answerRows = ({ replies }: Described): string[][] => {
  const several = Object.keys(replies).length > 1
  return Object.entries(replies).flatMap(([status, reply]) => {
    const shape = (reply ?? {}) as Shape
    const part = several ? status : 'answer'
    return shape.type === 'array' ? fieldRows(`${part}, each`, shape.items) : fieldRows(part, shape)
  })
}

const sandboxIs: Record<ToolboxNeeds, string> = {
  sandbox: '',
  'sandbox, also paused': 'Also of a paused sandbox.',
}

const sentencesOf = (route: ToolboxRoute): string =>
  [
    route.socket === undefined ? `Answers ${statusesOf(route)}.` : '',
    route.socket !== undefined && '101' in route.replies ? 'A WebSocket.' : '',
    route.socket !== undefined && !('101' in route.replies) ? `Answers ${statusesOf(route)}, or is a WebSocket.` : '',
    route.streamsBody === true ? 'The body is read as it comes, whatever its size.' : '',
    sandboxIs[route.needs],
  ]
    .filter(Boolean)
    .join(' ')

const toolboxPage = () => {
  const routes: readonly ToolboxRoute[] = toolboxEndpoints
  return page(
    'Endpoints of the toolbox',
    'All are below `{proxy_url}/toolbox/{sandboxId}`, open to who may use the sandbox, and need it to be `started` unless they say otherwise. A field with \\* must be there, or always is. What can go wrong is in [errors](errors.md).',
    table(
      ['method', 'path', 'what it does'],
      routes.map((route) => [route.method, code(braced(route.path)), route.summary]),
    ),
    ...routes.map((route) => describe(route, sentencesOf(route), answerRows(route))),
  )
}

// --- errors, states, permissions

const errorsPage = () =>
  page(
    'Errors',
    'Every refusal has the same body: `path`, `timestamp`, `statusCode`, `error`, `message` (one sentence), `code`, `source`, `method`. Decide by `code` or status, never by the sentence, which may say more than the one below. Older programs decide by words: every sentence has at least those of its row.',
    table(
      ['code', 'status', 'sentence', 'words in every sentence'],
      (Object.keys(problems) as ProblemCode[])
        .toSorted((one, other) => problems[one][0] - problems[other][0])
        .map((name) => {
          const [status, wireCode, sentence] = problems[name]
          return [code(wireCode), String(status), sentence, wordsOf(name).map(code).join(', ')]
        }),
    ),
  )

const yes = (is: boolean) => (is ? 'yes' : '')

/** What a move or a word of a runner leads to, or time. The others are only words of the interface. */
const reachedStates = new Set<SandboxState>([
  ...moves.flatMap(([, , through, to]) => [through, to]),
  ...Object.values(settlements).flatMap((settlement) => Object.values(settlement)),
  ...Object.values(stateRows).flatMap(({ whenStuck }) =>
    whenStuck === null || whenStuck === 'retry' ? [] : [whenStuck],
  ),
])

const statesInUse = sandboxStates.filter((state) => reachedStates.has(state))
const reservedStates = sandboxStates.filter((state) => !reachedStates.has(state))
const movesInUse = moves.filter(([, from]) => from === null || reachedStates.has(from))

/** A claim is over as it begins. */
const failureOf = ([, , through, to]: (typeof moves)[number]): string =>
  through === to ? '' : code(settlements[through].error ?? stateRows[through].whenStuck ?? '')

const statesPage = () =>
  page(
    'States of a sandbox',
    'What is not in these tables cannot happen.',
    '## What each state means',
    table(
      ['state', 'at rest', 'holds cpu and memory', 'holds disk', 'stuck after', 'then'],
      statesInUse.map((state) => {
        const row = stateRows[state]
        return [
          code(state),
          yes(row.settled),
          yes(row.holdsCompute),
          yes(row.holdsDisk),
          row.stuckAfterSeconds === null ? '' : `${row.stuckAfterSeconds} s`,
          row.whenStuck === null
            ? ''
            : row.whenStuck === 'retry'
              ? 'is asked for again'
              : `becomes \`${row.whenStuck}\``,
        ]
      }),
    ),
    `Reserved: ${reservedStates.map(code).join(', ')}. They are words of the interface, and no sandbox here is ever in one of them.`,
    '## What each verb does',
    table(
      ['verb', 'from', 'through', 'to', 'if it is refused', 'if it fails'],
      movesInUse.map((move) => {
        const [on, from, through, to] = move
        const refused = (refusals[through] ?? []).map(code).join(', ')
        return [on, from === null ? '' : code(from), code(through), code(to), refused, failureOf(move)]
      }),
    ),
    'Refused: the runner could not do it, or would not, and the sandbox is well. It is then, with the reason, in that of the named states that the runner found it in. Failed is all else, also what takes too long, as above. A snapshot that fails leaves its sandbox as it was, unless something happened to the sandbox itself.',
    `A fork is asked of a sandbox that is ${forkableStates.map(code).join(', ')}, whose state it does not change; its row is the child's.`,
    `A verb that finds its work done answers the sandbox as it is: ${alreadyDone.map(([verb, state]) => `${verb} on ${code(state)}`).join(', ')}.`,
  )

/** What may follow what, as a picture; `delete` leads out of every state, and would hide all else. */
const lifecyclePage = () => {
  const drawn = moves.filter(([on]) => on !== 'delete')
  // A claim is over as it begins, and what waits for its image goes on by another move.
  const isDrawnOn = (through: SandboxState) => drawn.some(([, from]) => from === through)
  const arrows = [
    ...drawn.map(([on, from, through]) => `${from ?? '[*]'} --> ${through}: ${on}`),
    ...drawn.flatMap(([, , through, to]) => (isDrawnOn(through) ? [] : [`${through} --> ${to}`])),
    ...statesAwaitingImage.map((state) => `${state} --> build_failed`),
    'destroying --> destroyed',
    'destroyed --> [*]',
  ]
  const words = reportable.filter((word) => word !== 'error' && word !== 'destroyed')
  const told = statesInUse.map((state) => [
    code(state),
    ...words.map((word) => {
      const to = settlements[state][word]
      return to === undefined ? '' : code(to)
    }),
    (refusals[state] ?? []).map(code).join(', '),
  ])
  return page(
    'The life of a sandbox',
    'The same tables as in [states](states.md), drawn. `delete` leads from every state through `destroying` to `destroyed`; every other move but a build may also end in `error`, from which `recover` and `delete` lead on.',
    ['```mermaid', 'stateDiagram-v2', ...[...new Set(arrows)].map((arrow) => `  ${arrow}`), '```'].join('\n'),
    '## What the word of a runner changes',
    'Of the newest generation only; a word that is not here changes nothing. `started` and `paused` count only where that is wanted. From every state with an entry, `error` and `destroyed` lead to `error`, except that `destroyed` ends `destroying`. Out of `error` the word that was wanted leads there, however late. `snapshotting` ends with its image. What a runner refuses leaves the sandbox in one of the states of the last column, with its reason.',
    table(['state', ...words.map((word) => `says ${code(word)}`), 'refuses, and it is'], told),
  )
}

/** Whether an endpoint needs it, or a room asks for it. */
const opensSomething = (permission: Permission): boolean =>
  listEndpoints().some(({ needs }) => needs === permission) ||
  Object.values(decidedInside).some((rule) => rule.includes(code(permission)))

const permissionsPage = () => {
  const inUse = allPermissions.filter(opensSomething)
  const others = allPermissions.filter((permission) => !inUse.includes(permission))
  const rows = (some: readonly Permission[]) =>
    some.map((permission) => [
      code(permission),
      permissions[permission].replace(/^./, (first) => first.toLowerCase()).replace(/\.$/, ''),
    ])
  return page(
    'Permissions',
    'An API key allows exactly what it lists, as long as its user holds it. An owner holds everything; a member holds what their roles give.',
    table(['permission', 'allows to'], rows(inUse)),
    '## Accepted, and open nothing here',
    'Words of the interface that keys and roles may hold, and that no endpoint of this server asks for. What some of them speak of is not here; runners are the operator’s, and any member sees quotas and usage. A key that is to be as good as its user lists them too.',
    table(['permission', 'would allow to'], rows(others)),
    '## Other words of `needs`',
    table(
      ['word', 'who'],
      Object.entries(roleNeeds).map(([word, who]) => [code(word), who]),
    ),
  )
}

// --- policy

const isLetIn = (route: ControlRoute, caller: GridCaller) => ['yes', 'own'].includes(answerTo(route, caller))

/** Those of many callers that are let in, in few words. */
const openTo = <Caller extends GridCaller>(route: ControlRoute, many: readonly Caller[], all: string): string => {
  const some = many.filter((caller) => isLetIn(route, caller))
  return some.length === many.length ? all : some.length === 0 ? 'none' : some.join(', ')
}

const policyPage = () => {
  const routes = listEndpoints()
  const single = [
    'nobody',
    'stranger',
    'member',
    'owner',
    'operator',
    'operator by key',
    'proxy',
    'runner',
    'collector',
  ] as const
  const pathOf = ({ method, path }: ControlRoute) => `${method} ${braced(path)}`
  const row = (route: ControlRoute) => [
    code(pathOf(route)),
    ...single.map((caller) => answerTo(route, caller)),
    openTo(
      route,
      globalRoles.map(({ name }) => name),
      'all',
    ),
    openTo(route, allPermissions, 'any'),
  ]
  const inside = routes.flatMap((route) => {
    const rule = decidedInside[`${route.method} ${route.path}`]
    return rule === undefined ? [] : [[code(pathOf(route)), rule]]
  })
  return page(
    'Who may do what',
    'Every endpoint of control and every kind of caller. `src/control/auth/policy.test.ts` asks a real server all of it, each role and each key by itself.',
    [
      '- **yes**: let in. What the path names in another organization than the caller’s is 404, as if it did not exist.',
      '- **own**: let in, but only to their own organization; what belongs to this one is 404.',
      '- **401**, **403**, **404**: refused, before the body is read.',
      '- *stranger*: owner of another organization. *member*: without any role. *owner*: signed in, or by a key that lists every permission. *operator*: signed in, an owner of any organization that they name; *by key*, of the key’s own only.',
      '- *roles*: members with just this role. *keys*: keys of an owner that list just this permission. A key without any permission opens what is open to any key.',
    ].join('\n'),
    table(['endpoint', ...single, 'roles', 'keys'], routes.map(row)),
    '## Decided inside',
    'What depends on more than the caller and the endpoint, besides states and quotas.',
    table(['endpoint', 'rule'], inside),
    '## Other doors',
    'Not part of the interface’s table, and served by control all the same.',
    table(
      ['below', 'who decides'],
      Object.entries(otherDoors).map(([start, who]) => [code(start), who]),
    ),
    '## Global roles',
    table(
      ['role', 'id', 'permissions'],
      globalRoles.map(({ name, id, permissions: held }) => [name, code(id), held.map(code).join(', ')]),
    ),
  )
}

// --- settings

/** What the settings say of themselves only by their names. */
const meanings: Record<string, string> = {
  ALCOVE_RATE_LIMIT_ANONYMOUS: `of calls without a credential, by address: ${rateMeaning}; no limit unless told`,
  ALCOVE_RATE_LIMIT_FAILED_AUTH: `of calls with a wrong credential or none, by address: ${rateMeaning}; no limit unless told`,
  ALCOVE_RATE_LIMIT_AUTHENTICATED: `of an organization, for all that has no limit of its own: ${rateMeaning}; no limit unless told`,
  ALCOVE_RATE_LIMIT_SANDBOX_CREATE: `of an organization, for create and fork: ${rateMeaning}; no limit unless told`,
  ALCOVE_RATE_LIMIT_SANDBOX_LIFECYCLE: `of an organization, for start, stop, pause, resize, archive, recover and delete: ${rateMeaning}; no limit unless told`,
  ALCOVE_TRUSTED_PROXIES:
    'how many reverse proxies stand in front of control, each adding to X-Forwarded-For, by which callers are then told apart; 0 unless told: the header is not read',
  ALCOVE_PUBLIC_URL:
    'what clients call instead of --port, where a reverse proxy is in front of it, such as https://alcove.example.com; set together with ALCOVE_PROXY_URL',
  ALCOVE_PROXY_URL:
    'the same of toolboxes and previews, such as https://sandboxes.example.net; previews are one name below, which the reverse proxy sends along',
  ALCOVE_LOG_LEVEL: 'trace, debug, info, warn, error, fatal or silent; info unless told',
  ALCOVE_FIRST_KEY: 'API key of the first administrator, made while there is no user; none unless told',
  ALCOVE_OLDER_ENCRYPTION_KEYS:
    'keys that were ALCOVE_ENCRYPTION_KEY before, with commas between: they still read; none unless told',
  ALCOVE_AUDIT_DAYS: 'how many days the audit log is kept; 90 unless told',
  ALCOVE_METER_HOURS: 'how many hours it is kept what sandboxes used; 48 unless told',
  ALCOVE_EXECUTE_TIMEOUT_SECONDS:
    'limit in seconds of a process/execute that names no timeout and carries no X-Daytona-SDK-Version header. Default: 10. 0 disables it.',
  ALCOVE_DISK_MIB_PER_SECOND:
    'how many MiB a sandbox may read, and as many write, of its disk in a second. Default: 200. 0 disables the limit. `alcove doctor` says what holds.',
  ALCOVE_METER_SECONDS:
    'every how many seconds it is written down what sandboxes use, at most 3600; 60 unless told, 0: never',
  ALCOVE_COLLECTOR_KEY:
    'the service key of a telemetry collector, which may read where telemetry goes; 32 characters or more; none unless told',
  ALCOVE_DEFAULT_REGION_MAY_CHANGE:
    'true: an organization that has a default region may choose another; false unless told',
  ALCOVE_OIDC_ISSUER:
    'OpenID issuers whose tokens are believed, as URLs with commas between; clients are told of the first; none unless told',
  ALCOVE_OIDC_AUDIENCE: 'what a token must be made for; alcove unless told',
  ALCOVE_OIDC_CLIENT_ID: 'the client as which the dashboard and `alcove login` sign in people; alcove unless told',
  ALCOVE_OIDC_CLOCK_SKEW_SECONDS: 'by how much the clock of an issuer may differ; 30 unless told',
  ALCOVE_CACHE_DIR: 'what all servers of a host share, such as built images; /var/cache/alcove unless told',
  ALCOVE_IMAGES_DIR:
    'images as files (OCI layouts and archives, docker save), which callers may name; <data>/images unless told',
  ALCOVE_REGISTRIES:
    'registries, as host or host:port with commas between, that images may come from, such as docker.io,ghcr.io; any unless told',
  ALCOVE_PRIVATE_REGISTRIES:
    'registries that may be on this machine or at addresses that are not public, spoken to through the network of the host; none unless told',
  ALCOVE_OPEN_NETWORKS:
    'IPv4 addresses and networks, with commas between, that sandboxes may reach although they are not public or belong to the networks of the host, such as 10.1.0.0/16; never the host itself; none unless told',
  ALCOVE_PLAIN_REGISTRIES:
    'registries, as host:port with commas between, that are spoken to without TLS, wherever they are; none unless told',
  ALCOVE_REGISTRY_AUTH:
    'a file with credentials for registries, as containers-auth.json(5) has them, used for every caller; none unless told',
  ALCOVE_OVERCOMMIT:
    'how many times the cpu, memory and disk of the machine may be promised to sandboxes; 64,8,8 unless told',
  ALCOVE_DASHBOARD_URL:
    'the page that browsers are sent to when somebody has signed in by an identity provider of their organization, or could not; none unless told',
  ALCOVE_SSO_FOR_ALL:
    'true: every organization that people share may have single sign-on, not only those that an operator enables it for; false unless told',
  ALCOVE_ALLOW_PRIVATE_TARGETS:
    'addresses and networks, with commas between, that identity providers and webhooks of organizations may be at besides the public Internet, such as 10.1.0.0/16; none unless told',
  ALCOVE_WEBHOOK_PROVIDER: 'who sends webhooks: embedded, svix or none; embedded unless told',
  ALCOVE_SVIX_URL: 'where the API of Svix is, for ALCOVE_WEBHOOK_PROVIDER=svix; https://api.svix.com unless told',
  ALCOVE_SVIX_TOKEN: 'the API token of Svix; needed for ALCOVE_WEBHOOK_PROVIDER=svix',
  ALCOVE_MOST_WARM:
    'how many sandboxes of each snapshot are kept started ahead at most, as they are in demand; 8 unless told, 0: none',
  ALCOVE_RUNNER_SOCKET: 'the unix socket that toolboxes are served on; <data>/run/runner.sock unless told',
  ALCOVE_ARCHIVE_STORE:
    'where the disks of archived sandboxes lie: file:///absolute/path, or s3://bucket/prefix?endpoint=URL&region=NAME; <data>/archive unless told',
  ALCOVE_ARCHIVE_S3_KEY: 'the access key of an S3 archive store',
  ALCOVE_ARCHIVE_S3_SECRET: 'the secret of that key',
  ALCOVE_SMTP_URL:
    'the mail server: smtp://name:password@host:587, or smtps:// for TLS from the first byte; a password is sent through TLS only; unless told, mail is written to the log',
  ALCOVE_MAIL_FROM: 'who mail is from: alcove@example.com or Alcove <alcove@example.com>; needed with ALCOVE_SMTP_URL',
  DATABASE_URL: 'a PostgreSQL that somebody else runs, instead of the one that `up` brings',
  PATH: 'where programs of the system are looked for',
}

/** OpenTelemetry's own, a row for those that say the same of each signal; `*` stands for its name. */
const telemetryMeanings: Record<string, string> = {
  OTEL_SDK_DISABLED: 'true: nothing is sent',
  'OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_*_ENDPOINT':
    'where all signals go (below it /v1/traces, /v1/metrics, /v1/logs), or one (as it stands); nothing is sent unless told',
  'OTEL_*_EXPORTER': 'otlp or none, for TRACES, METRICS and LOGS; otlp where there is an endpoint',
  'OTEL_EXPORTER_OTLP_PROTOCOL, OTEL_EXPORTER_OTLP_*_PROTOCOL':
    'http/protobuf or http/json; http/protobuf unless told. There is no grpc',
  'OTEL_EXPORTER_OTLP_HEADERS, OTEL_EXPORTER_OTLP_*_HEADERS': 'sent along, as name=value with commas between',
  'OTEL_EXPORTER_OTLP_TIMEOUT, OTEL_EXPORTER_OTLP_*_TIMEOUT': 'of one export, milliseconds; 10000 unless told',
  'OTEL_EXPORTER_OTLP_COMPRESSION, OTEL_EXPORTER_OTLP_*_COMPRESSION': 'gzip or none; none unless told',
  'OTEL_EXPORTER_OTLP_CERTIFICATE, OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE, OTEL_EXPORTER_OTLP_CLIENT_KEY':
    'files for TLS, which control and proxy must be able to read; also for one signal',
  OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE:
    'cumulative, delta or lowmemory; cumulative unless told, and always for what /metrics says',
  OTEL_SERVICE_NAME:
    'alcove-control, alcove-proxy, alcove-runner unless told; `up` puts the program behind what is told',
  OTEL_RESOURCE_ATTRIBUTES: 'told of every program, as name=value with commas between',
  OTEL_TRACES_SAMPLER:
    'always_on, always_off, traceidratio, or one of them with parentbased_ in front; parentbased_always_on unless told',
  OTEL_TRACES_SAMPLER_ARG: 'of traceidratio: the share of traces that are sent, 0 to 1',
  OTEL_PROPAGATORS: 'tracecontext carries the traces of callers on, none does not; tracecontext unless told',
  'OTEL_BSP_SCHEDULE_DELAY, OTEL_BSP_EXPORT_TIMEOUT, OTEL_BSP_MAX_QUEUE_SIZE, OTEL_BSP_MAX_EXPORT_BATCH_SIZE':
    'of spans: 5000 ms, 30000 ms, 2048, 512 unless told',
  'OTEL_BLRP_SCHEDULE_DELAY, OTEL_BLRP_EXPORT_TIMEOUT, OTEL_BLRP_MAX_QUEUE_SIZE, OTEL_BLRP_MAX_EXPORT_BATCH_SIZE':
    'of log lines: 1000 ms, 30000 ms, 2048, 512 unless told',
  'OTEL_METRIC_EXPORT_INTERVAL, OTEL_METRIC_EXPORT_TIMEOUT': '60000 ms, 30000 ms unless told',
  OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT: 'characters; 4096 unless told',
}

const isTelemetry = (name: string) => name.startsWith('OTEL_')

const telemetryTable = (): string => {
  const rows = Object.entries(telemetryMeanings).map(([names, meaning]) => {
    const each = names.split(', ')
    const patterns = each.map((name) => new RegExp(`^${name.replace('*', '(?:TRACES|METRICS|LOGS)')}$`))
    return { names: each.map(code).join(', '), meaning, patterns }
  })
  for (const name of namesRead((environment) => readTelemetry(environment, ''))) {
    if (rows.some(({ patterns }) => patterns.some((pattern) => pattern.test(name)))) continue
    throw new Error(`Say in scripts/print-reference.ts what ${name} is for.`)
  }
  return table(
    ['variable', 'meaning'],
    rows.map(({ names, meaning }) => [names, meaning] as const),
  )
}

/** Asks a program for its settings with nothing set: it reads every name, and says what the missing ones are for. */
const settingsOf = (load: (environment: NodeJS.ProcessEnv) => unknown): (readonly [string, string])[] => {
  const said = new Map<string, string>()
  const names = namesRead((nothing) => {
    try {
      load(nothing)
    } catch (error) {
      for (const [, name, meaning] of String((error as Error).message).matchAll(/^(\w+) is missing: (.*)$/gm)) {
        said.set(name!, `${meaning} \\*`)
      }
    }
  })
  return names.flatMap((name) => {
    if (isTelemetry(name)) return []
    const meaning = said.get(name) ?? meanings[name]
    if (meaning === undefined) throw new Error(`Say in scripts/print-reference.ts what ${name} is for.`)
    return [[code(name), meaning.replaceAll('<', '\\<')] as const]
  })
}

/** What is asked for of an environment in which nothing is set. */
const namesRead = (load: (nothing: NodeJS.ProcessEnv) => unknown): string[] => {
  const names = new Set<string>()
  load(
    new Proxy({} as NodeJS.ProcessEnv, {
      get: (_, name) => {
        names.add(String(name))
        return undefined
      },
    }),
  )
  return [...names]
}

const settingsPage = () => {
  const section = (title: string, load: (environment: NodeJS.ProcessEnv) => unknown) => [
    `## ${title}`,
    table(['variable', 'meaning'], settingsOf(load)),
  ]
  return page(
    'Settings',
    'Each program reads its environment once, when it starts, and names everything that is wrong with it at once. `up` sets these for the programs that it starts; whoever starts them otherwise sets them. \\*: must be there.',
    ...section('up', readUpConfig),
    ...section('control', loadControl),
    ...section('proxy', loadProxy),
    ...section('runner', loadRunner),
    `Each of them also reads ${code('ALCOVE_LOG_LEVEL')}: ${meanings['ALCOVE_LOG_LEVEL']}.`,
    '## Telemetry',
    'Control, proxy and runner read these, by the specification of OpenTelemetry; `up` passes every `OTEL_…` on. What cannot be used is warned of in the log and otherwise ignored.',
    telemetryTable(),
  )
}

/** File name and content of every page. */
const printPages = (): Record<string, string> => ({
  'endpoints.md': endpointsPage(),
  'toolbox.md': toolboxPage(),
  'errors.md': errorsPage(),
  'states.md': statesPage(),
  'lifecycle.md': lifecyclePage(),
  'permissions.md': permissionsPage(),
  'policy.md': policyPage(),
  'settings.md': settingsPage(),
})

const readPage = (name: string) => {
  try {
    return readFileSync(join(directory, name), 'utf8')
  } catch {
    return undefined
  }
}

/** The pages that do not say what the code says. */
export const findStalePages = (): string[] =>
  Object.entries(printPages())
    .filter(([name, text]) => readPage(name) !== text)
    .map(([name]) => name)

if (import.meta.main) {
  if (process.argv.includes('--check')) {
    const stale = findStalePages()
    if (stale.length > 0) {
      console.error(`Not true any more: ${stale.join(', ')}. Run: node scripts/print-reference.ts`)
      process.exit(1)
    }
  } else {
    mkdirSync(directory, { recursive: true })
    for (const [name, text] of Object.entries(printPages())) writeFileSync(join(directory, name), text)
  }
}
