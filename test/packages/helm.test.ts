// Renders the Helm chart with the values of many kinds of operators, and checks the Kubernetes objects. The test needs no
// running Kubernetes.
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { before, suite, test } from 'node:test'
import { controlEnvironment } from '#src/cli/control.ts'
import { loadConfig } from '#src/control/config.ts'
import { newEncryptionKey } from '#src/up/data-directory.ts'
import { checkout } from '#test/sandboxes/guide.ts'
import { type Charts, type KubernetesObject, openCharts } from './helm.ts'

const chart = join(checkout, 'deploy/helm/alcove')
const needed = {
  'image.repository': 'registry.example.com/alcove',
  publicUrl: 'https://alcove.example.com',
  proxyUrl: 'https://sandboxes.example.net',
  controlSecret: 'alcove-control',
  'runner.tokensSecret': 'alcove-hosts',
  'store.url': 's3://alcove/disks?endpoint=https://s3.example.com&region=one',
  'store.secret': 'alcove-store',
}

type Values = Record<string, string>
type Container = {
  name: string
  image: string
  command?: string[]
  securityContext: { privileged?: boolean; readOnlyRootFilesystem?: boolean; capabilities?: { drop: string[] } }
  env: { name: string; value?: string }[]
  resources: { requests: Record<string, string> }
} & Record<'startupProbe' | 'readinessProbe' | 'livenessProbe', object>
type PodSpec = {
  automountServiceAccountToken: boolean
  hostNetwork?: boolean
  securityContext?: { runAsNonRoot?: boolean; seccompProfile?: { type: string } }
  containers: Container[]
}
type Workload = KubernetesObject & {
  spec: {
    strategy?: { rollingUpdate: { maxUnavailable: number } }
    selector: { matchLabels: Record<string, string> }
    template: { metadata: { labels: Record<string, string> }; spec: PodSpec }
  }
}

/** Pass the settings of Alcove to Helm as text, because the chart refuses numbers for them. */
const flags = (values: Values) =>
  Object.entries(values).flatMap(([name, value]) => [
    name.includes('.settings.') ? '--set-string' : '--set',
    `${name}=${value}`,
  ])
const isWorkload = (object: KubernetesObject): object is Workload => ['Deployment', 'DaemonSet'].includes(object.kind)

const matrix: readonly (readonly [string, Values])[] = [
  ['with what must be said', {}],
  ['without hosts', { 'runner.enabled': 'false', 'runner.tokensSecret': '', 'store.url': '', 'store.secret': '' }],
  ['with one control and an image by digest', { 'control.replicas': '1', 'image.digest': `sha256:${'0a'.repeat(32)}` }],
  ['with an Ingress', { 'ingress.enabled': 'true', 'ingress.host': 'alcove.example.com', 'ingress.tlsSecret': 'tls' }],
  ['with settings', { 'control.settings.ALCOVE_AUDIT_DAYS': '30', 'runner.settings.ALCOVE_SUDO': 'false' }],
  ['with an address for hosts', { 'hosts.serviceType': 'LoadBalancer', 'hosts.address': '198.51.100.7' }],
]

suite('the Helm chart', () => {
  let charts: Charts
  before(async () => {
    charts = await openCharts()
  })

  const render = async (values: Values): Promise<KubernetesObject[]> => {
    const given = { ...needed, ...values }
    const answer = await charts.helm('template', 'release', chart, '--namespace', 'alcove', ...flags(given))
    if ('refusal' in answer) throw new Error(answer.refusal)
    return charts.parse(answer.output) as KubernetesObject[]
  }

  test('`helm lint --strict` finds no error in the chart', async () => {
    const answer = await charts.helm('lint', '--strict', chart, ...flags(needed))
    assert.ok('output' in answer, JSON.stringify(answer))
  })

  for (const [name, values] of matrix) {
    test(`${name}: all Kubernetes objects are valid, named and labelled, and only runners are privileged`, async () => {
      const objects = await render(values)
      for (const object of objects) {
        charts.check(object)
        assert.equal(object.metadata.labels['app.kubernetes.io/name'], 'alcove', object.metadata.name)
        assert.ok(object.metadata.labels['app.kubernetes.io/component'], object.metadata.name)
      }
      const workloads = objects.filter(isWorkload)
      assert.equal(workloads.length, values['runner.enabled'] === 'false' ? 1 : 2)
      for (const { kind, spec } of workloads) {
        const pod = spec.template.spec
        for (const [label, value] of Object.entries(spec.selector.matchLabels)) {
          assert.equal(spec.template.metadata.labels[label], value)
        }
        assert.equal(pod.automountServiceAccountToken, false)
        for (const container of pod.containers) {
          assert.doesNotMatch(container.image, /:latest$|\/alcove$/)
          for (const probe of ['startupProbe', 'readinessProbe', 'livenessProbe'] as const) assert.ok(container[probe])
          assert.deepEqual(Object.keys(container.resources.requests).sort(), ['cpu', 'memory'])
          assert.equal(container.securityContext.privileged ?? false, kind === 'DaemonSet')
          if (kind === 'DaemonSet') continue
          assert.equal(pod.hostNetwork ?? false, false)
          assert.equal(pod.securityContext?.runAsNonRoot, true)
          assert.equal(pod.securityContext.seccompProfile?.type, 'RuntimeDefault')
          assert.equal(container.securityContext.readOnlyRootFilesystem, true)
          assert.deepEqual(container.securityContext.capabilities?.drop, ['ALL'])
          assert.equal(spec.strategy?.rollingUpdate.maxUnavailable, 0)
        }
      }
    })
  }

  test('the Helm chart passes settings and addresses to the programs as text, not as numbers', async () => {
    const values = { 'control.settings.ALCOVE_AUDIT_DAYS': '30', 'hosts.address': '198.51.100.7' }
    const containers = (await render(values)).filter(isWorkload).flatMap(({ spec }) => spec.template.spec.containers)
    const settingOf = (container: string, setting: string) =>
      containers.find(({ name }) => name === container)?.env.find(({ name }) => name === setting)?.value
    assert.equal(settingOf('control', 'ALCOVE_AUDIT_DAYS'), '30')
    const ofControl = containers.find(({ name }) => name === 'control')?.env ?? []
    const secrets = { DATABASE_URL: 'postgres://db/alcove', ALCOVE_ENCRYPTION_KEY: newEncryptionKey() }
    const env = Object.fromEntries(ofControl.map(({ name, value }) => [name, value]))
    const { settings } = loadConfig(controlEnvironment({ ...env, ...secrets }, () => undefined))
    assert.deepEqual([settings.publicUrl, settings.proxyUrl], [needed.publicUrl, needed.proxyUrl])
    assert.deepEqual([settings.hostsListen?.port, settings.auditDays], [4603, 30])
    assert.equal(settingOf('runner', 'CONTROL'), '198.51.100.7')
    assert.equal(settingOf('runner', 'ALCOVE_ARCHIVE_STORE'), needed['store.url'])
  })

  test('the Helm chart refuses unknown, missing, unsafe or secret values, and the error names the value', async () => {
    const wrong: readonly (readonly [RegExp, Values])[] = [
      [/controlSecret/, { controlSecret: '' }],
      [/repository/, { 'image.repository': '' }],
      [/tag/, { 'image.tag': 'latest' }],
      [/digest/, { 'image.digest': 'sha256:abc' }],
      [/replica /, { 'control.replica ': '2' }],
      [/replicas/, { 'control.replicas': '0' }],
      [/publicUrl/, { publicUrl: 'alcove.example.com' }],
      [/ALCOVE_ENCRYPTION_KEY/, { 'control.settings.ALCOVE_ENCRYPTION_KEY': 'x' }],
      [/ALCOVE_LISTEN/, { 'control.settings.ALCOVE_LISTEN': '0.0.0.0:1' }],
      [/nodeSelector/, { 'runner.nodeSelector.alcove\\.dev/host': 'null' }],
      [/tokensSecret/, { 'runner.tokensSecret': '' }],
      [/dataDirectory/, { 'runner.dataDirectory': 'data' }],
      [/host/, { 'ingress.enabled': 'true' }],
      [/store/, { 'store.url': 'file:///mnt' }],
    ]
    for (const [named, values] of wrong) {
      const answer = await charts.helm('template', 'release', chart, ...flags({ ...needed, ...values }))
      assert.ok('refusal' in answer, JSON.stringify(values))
      assert.match(answer.refusal, named)
    }
  })
})
