// Checks the systemd units with the tools of systemd, and compose.yaml with the code by which control reads its settings.
import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { before, suite, test } from 'node:test'
import { controlEnvironment } from '#src/cli/control.ts'
import { loadConfig } from '#src/control/config.ts'
import { newApiKey, newEncryptionKey } from '#src/up/data-directory.ts'
import { checkout } from '#test/sandboxes/guide.ts'
import { type Charts, openCharts } from './helm.ts'

const textOf = (file: string) => readFileSync(join(checkout, 'deploy', file), 'utf8')
const hasSystemd = spawnSync('systemd-analyze', ['--version']).status === 0

suite('systemd units', { skip: !hasSystemd && 'systemd-analyze is not installed' }, () => {
  for (const name of ['alcove', 'alcove-control', 'alcove-runner']) {
    test(`systemd finds nothing wrong in ${name}.service`, () => {
      const directory = mkdtempSync(join(tmpdir(), 'alcove-unit-'))
      try {
        const unit = join(directory, `${name}.service`)
        writeFileSync(unit, textOf(`systemd/${name}.service`).replaceAll('/opt/alcove', checkout))
        const { status, stderr } = spawnSync('systemd-analyze', ['verify', '--man=no', unit], { encoding: 'utf8' })
        assert.deepEqual({ status, stderr }, { status: 0, stderr: '' })
      } finally {
        rmSync(directory, { recursive: true })
      }
    })
  }

  test('`systemd-analyze security` rates the exposure of control at 2.0 of 10 or lower', () => {
    const unit = join(checkout, 'deploy/systemd/alcove-control.service')
    execFileSync('systemd-analyze', ['security', '--offline=true', '--threshold=20', unit], { stdio: 'pipe' })
  })

  test('the systemd unit and the Helm chart give a runner the same capabilities', () => {
    const [, ofUnit = ''] = /^CapabilityBoundingSet=(.*)$/m.exec(textOf('systemd/alcove-runner.service')) ?? []
    const ofChart = textOf('helm/alcove/capabilities.txt').trim().split('\n')
    assert.deepEqual(
      ofUnit.split(' '),
      ofChart.map((name) => `CAP_${name.toUpperCase()}`),
    )
  })
})

type Compose = {
  services: Record<
    'control' | 'postgres',
    { image: string; environment: Record<string, string>; read_only?: boolean; cap_drop?: string[] }
  >
}

suite('compose.yaml', () => {
  let charts: Charts
  before(async () => {
    charts = await openCharts()
  })

  test('compose.yaml gives control valid settings and no privileges, and each image has a fixed version', () => {
    const given: Record<string, string> = {
      POSTGRES_PASSWORD: 'secret',
      ALCOVE_ENCRYPTION_KEY: newEncryptionKey(),
      ALCOVE_FIRST_KEY: newApiKey(),
      ALCOVE_PUBLIC_URL: 'https://alcove.example.com',
      ALCOVE_PROXY_URL: 'https://sandboxes.example.net',
    }
    const text = textOf('compose.yaml').replaceAll(/\$\{(\w+):([?-])([^}]+)\}/g, (_, name, kind, fallback) => {
      assert.ok(kind === '-' || given[name] !== undefined, name)
      return given[name] ?? fallback
    })
    const [compose] = charts.parse(text) as [Compose]
    const { control, postgres } = compose.services
    const config = loadConfig(controlEnvironment(control.environment, () => undefined))
    assert.equal(config.databaseUrl, 'postgres://alcove:secret@postgres:5432/alcove')
    assert.deepEqual(config.settings.hostsListen, { host: '0.0.0.0', port: 4603 })
    assert.deepEqual([control.read_only, control.cap_drop], [true, ['ALL']])
    for (const { image } of [control, postgres]) assert.match(image, /:\d[\d.]*$/)
  })
})
