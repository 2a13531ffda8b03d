import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { toolboxEndpoints } from '#src/toolbox/endpoints.ts'
import { asCall, type Operation, operationsOf, type SdkMethod, sdkMethods } from './clients.ts'
import { listEndpoints } from './list-endpoints.ts'
import { code, page, table } from './markdown.ts'

/**
 * Reasons why operations are not served, by the beginning of their path. The first row that matches an operation is its
 * reason.
 */
const reasons: readonly (readonly [path: string, reason: string])[] = [
  ['/computeruse/', 'Not built yet.'],
  ['/volumes', 'Not built yet.'],
  ['/secret', 'Not built yet.'],
  ['/sandbox/{}/secrets', 'Not built yet.'],
  ['/sandbox/ssh-access', 'Not built yet.'],
  ['/sandbox/{}/ssh-access', 'Not built yet.'],
  [
    '/docker-registry/registry-push-access',
    'There is no registry here to push to. Push to a registry of your own, and add your account at it with `POST /docker-registry`.',
  ],
  [
    '/admin/',
    'For the operator of the public service. Here `alcove` commands and the endpoints of `/organizations`, `/runners` and `/audit` do this.',
  ],
  ['/jobs', 'Between the public service and its runners. Ours have a link of their own.'],
  ['/runners/healthcheck', 'Between the public service and its runners. Ours have a link of their own.'],
  ['/runners/me', 'Between the public service and its runners. Ours have a link of their own.'],
  ['/runners/{}/full', 'It would show the key of a runner, of which only the hash is stored.'],
  [
    '/runners/{}/draining',
    'Moving the sandboxes of a runner elsewhere is not built yet; `scheduling` keeps new ones away.',
  ],
  ['/runners/by-snapshot-ref', 'Between the public service and its runners. Ours have a link of their own.'],
  ['/preview/{}/signing-key', 'The gate checks signed addresses without giving the key away.'],
  ['/sandbox/{}/organization', 'For services of the public service. Our gate has it from control’s answer.'],
  [
    '/sandbox/{}/region-quota',
    'For services of the public service. `/organizations/{organizationId}/usage` has the numbers.',
  ],
  [
    '/sandbox/{}/telemetry/',
    'Logs and traces go to the OpenTelemetry collector of the organization (`otel-config`); the server does not store them.',
  ],
]

const reasonFor = ({ call }: Operation): string => {
  const path = call.split(' ')[1]!
  const row = reasons.find(([start]) => path.startsWith(start))
  if (row === undefined) throw new Error(`scripts/reference/compatibility.ts does not say why ${call} is not served`)
  return row[1]
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
  return 'Makes no call of its own'
}

const versionOf = (name: string): string =>
  JSON.parse(readFileSync(resolve(import.meta.dirname, `../../node_modules/@daytona/${name}/package.json`), 'utf8'))
    .version

/** Lists the operations and methods of the public packages, and whether this server serves each. */
export const compatibilityPage = (): string => {
  const served = new Set([...listEndpoints(), ...toolboxEndpoints].map(({ method, path }) => asCall(method, path)))
  const clients = (['api-client', 'toolbox-api-client'] as const).map((name) => ({
    name,
    operations: operationsOf(name),
  }))
  const operations = clients.flatMap((client) => client.operations)
  const isServed = isServedBy(served)
  const byName = new Map(operations.map((operation) => [operation.name, operation]))
  const methods = sdkMethods(operations).map((method) => ({
    ...method,
    answer: answerFor(
      method,
      (name) => isServed(byName.get(name)!),
      (name) => reasonFor(byName.get(name)!),
    ),
  }))
  const calling = methods.filter(({ answer }) => answer !== 'Makes no call of its own')
  return page(
    'Compatibility with the public packages',
    `What the packages of the 0.x line can call, read from the packages, and whether this server answers. Newer lines of the SDK speak another interface, so programs pin \`@daytona/sdk@0\`.`,
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
