import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { asCall } from '#src/http/unserved.ts'
import { toolboxEndpoints } from '#src/toolbox/endpoints.ts'
import { type Operation, operationsOf, type SdkMethod, sdkMethods } from './clients.ts'
import { listEndpoints } from './list-endpoints.ts'
import { code, page, table } from './markdown.ts'

const forRunners = 'It is for runners of the public service. Runners of Alcove have a connection of their own.'

/** Why Alcove does not serve some operations, by the beginning of their path. The first row that matches is used. */
const reasons: readonly (readonly [path: string, reason: string])[] = [
  [
    '/sandbox/{}/secrets',
    'It would return the values of secrets. In Alcove, only the runner of the sandbox gets these values, with `GET /runners/secrets` and over its link.',
  ],
  [
    '/docker-registry/registry-push-access',
    'There is no registry here to push to, and no method of the SDK calls this. Push the image to a registry of your own, add your account there with `POST /docker-registry`, and create the snapshot from the image’s name with `POST /snapshots`.',
  ],
  [
    '/admin/',
    'It is for the operator of the public service. On your own server, use the command `alcove` and the endpoints of `/organizations`, `/runners` and `/audit`.',
  ],
  ['/jobs', forRunners],
  ['/runners/healthcheck', forRunners],
  ['/runners/me', forRunners],
  ['/runners/by-snapshot-ref', forRunners],
  ['/runners/{}/full', 'It would show the key of a runner, of which Alcove stores only the hash.'],
  [
    '/runners/{}/draining',
    'Use `PATCH /runners/{runnerId}/scheduling`. There, `unschedulable` keeps new sandboxes away from the runner, and `move` moves its present sandboxes away.',
  ],
  ['/preview/{}/signing-key', 'Alcove gives no signing key away. Its gate checks signed addresses itself.'],
  [
    '/sandbox/{}/organization',
    'It is for internal programs of the public service. `GET /sandbox/{sandboxIdOrName}` answers `organizationId`.',
  ],
  [
    '/sandbox/{}/region-quota',
    'It is for internal programs of the public service. `GET /organizations/{organizationId}/usage` has the numbers.',
  ],
  [
    '/sandbox/{}/telemetry/',
    'Alcove stores no logs and traces. It sends them to the OpenTelemetry collector of the organization (`otel-config`).',
  ],
]

const reasonFor = ({ call }: Operation): string => {
  const path = call.split(' ')[1]!
  const row = reasons.find(([start]) => path.startsWith(start))
  if (row === undefined) throw new Error(`scripts/reference/compatibility.ts does not say why ${call} is not served`)
  return row[1]
}

/** Throws if a row of `reasons` matches no unserved operation, because such a row is out of date. */
const checkReasonsAreNeeded = (missing: readonly Operation[]): void => {
  const paths = missing.map(({ call }) => call.split(' ')[1]!)
  for (const [start] of reasons)
    if (!paths.some((path) => path.startsWith(start)))
      throw new Error(`scripts/reference/compatibility.ts: everything below ${start} is served; remove its reason`)
}

const isServedBy = (calls: ReadonlySet<string>) => (operation: Operation) => calls.has(operation.call)

const count = (all: readonly unknown[], some: readonly unknown[]) => `${some.length} of ${all.length}`

const answerFor = (
  { calls, opensSocket }: SdkMethod,
  isServed: (name: string) => boolean,
  whyNot: (name: string) => string,
) => {
  const missing = [...calls].filter((name) => !isServed(name))
  if (missing.length > 0)
    return `${missing.length < calls.size ? 'In part' : 'No'}. ${[...new Set(missing.map(whyNot))].join(' ')}`
  if (calls.size > 0 || opensSocket) return 'Yes'
  return 'Makes no call itself'
}

const versionOf = (name: string): string =>
  JSON.parse(readFileSync(resolve(import.meta.dirname, `../../node_modules/@daytona/${name}/package.json`), 'utf8'))
    .version

const servedCalls = (): Set<string> =>
  new Set([...listEndpoints(), ...toolboxEndpoints].map(({ method, path }) => asCall(method, path)))

/**
 * Returns the content of `unserved.json`: why Alcove does not serve some calls of a client. The server answers with
 * these reasons.
 */
export const unservedFile = (client: 'api-client' | 'toolbox-api-client'): string => {
  const isServed = isServedBy(servedCalls())
  const missing = operationsOf(client).filter((operation) => !isServed(operation))
  const reasonOf = Object.fromEntries(missing.map((each) => [each.call, reasonFor(each).replaceAll('`', '')]))
  return `${JSON.stringify(reasonOf, null, 2)}\n`
}

/**
 * Returns the page that lists the HTTP calls and methods of the published Daytona SDKs, and says for each whether
 * Alcove serves it.
 */
export const compatibilityPage = (): string => {
  const clients = (['api-client', 'toolbox-api-client'] as const).map((name) => ({
    name,
    operations: operationsOf(name),
  }))
  const operations = clients.flatMap((client) => client.operations)
  const isServed = isServedBy(servedCalls())
  checkReasonsAreNeeded(operations.filter((each) => !isServed(each)))
  const byName = new Map(operations.map((operation) => [operation.name, operation]))
  const methods = sdkMethods(operations).map((method) => ({
    ...method,
    answer: answerFor(
      method,
      (name) => isServed(byName.get(name)!),
      (name) => reasonFor(byName.get(name)!),
    ),
  }))
  const calling = methods.filter(({ answer }) => answer !== 'Makes no call itself')
  return page(
    'Compatibility with the public packages',
    'This page lists the calls that the public packages of version 0.x can make, and whether this server serves them. The list is read from the packages. Newer major versions of the SDK use another API, so pin `@daytona/sdk@0` in your programs.',
    table(
      ['Package', 'Version', 'Served'],
      [
        ...clients.map(({ name, operations: all }) => [
          code(`@daytona/${name}`),
          versionOf(name),
          `${count(all, all.filter(isServed))} operations`,
        ]),
        [
          code('@daytona/sdk'),
          versionOf('sdk'),
          `${count(
            calling,
            calling.filter(({ answer }) => answer === 'Yes'),
          )} methods that call the server`,
        ],
      ],
    ),
    '## Methods of the SDK',
    table(
      ['Method', 'Served'],
      methods.map(({ owner, name, answer }) => [code(`${owner}.${name}`), answer]),
    ),
    '## Operations that are not served',
    table(
      ['Operation', 'Call', 'Why'],
      operations.filter((each) => !isServed(each)).map((each) => [code(each.name), code(each.call), reasonFor(each)]),
    ),
  )
}
