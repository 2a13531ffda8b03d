// Runs the programs of the guide on coding agents as they are printed in the guide, with real coding agents. The server runs in a
// network namespace with a simulated Internet, which has model APIs that answer "hello" and an npm registry.
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { isPrivateHost, runOnPrivateHost } from '#src/runner/network/testing/private-host.ts'
import { needsRoot } from '#test/needs-root.ts'
import type { ModelCall, Services } from './agent-services.ts'
import { blocksOf, checkout, makeDesk, programsOf, readPage, runProgram } from './guide.ts'
import { installGuidePackages } from './guide-packages.ts'
import { type Platform, platform } from './harness.ts'
import { type SimulatedInternet, simulateInternet } from './simulated-internet.ts'

const address = '198.51.100.7'
const hosts = ['api.anthropic.com', 'api.openai.com']
const page = readPage('docs/guides/coding-agents.md')
const programs = programsOf(page)

if (!isPrivateHost) {
  let nodeModules: string
  // Installs the packages from the real npm registry. The simulated npm registry of the test then offers these packages.
  before(async () => {
    if (!needsRoot) nodeModules = await installGuidePackages('coding-agents')
  })
  test('Claude Code and Codex work in a sandbox as the guide says, and their keys are never in the sandbox', {
    skip: needsRoot,
  }, () => {
    assert.ok(nodeModules)
    return runOnPrivateHost(import.meta.filename, 420_000)
  })
} else {
  suite('the guide on coding agents', () => {
    let internet: SimulatedInternet
    let said = ''
    let server: Platform
    const desk = makeDesk()

    before(async () => {
      internet = await simulateInternet(desk, Object.fromEntries(hosts.map((name) => [name, address])))
      const nodeModules = await installGuidePackages('coding-agents')
      const services: Services = { address, ...internet.certify(hosts), nodeModules }
      const output = await internet.start(join(import.meta.dirname, 'agent-services.ts'), services)
      output.on('data', (chunk) => (said += chunk))
      server = await platform({ own: true, env: { ALCOVE_OPEN_NETWORKS: '198.51.100.0/24' } })
    })
    after(async () => {
      await server?.[Symbol.asyncDispose]()
      await internet?.[Symbol.asyncDispose]()
    })

    const runPrinted = async (name: string, env: Record<string, string> = {}) => {
      const program = programs.get(name) ?? assert.fail(`the guide has no ${name}`)
      // The simulated npm registry takes the place of the public registry. It uses no TLS, because the sandbox does not trust the
      // certificates of the simulated Internet.
      writeFileSync(join(desk, name), program.replace('npm install -g', `npm install -g --registry http://${address}/`))
      const here = { DAYTONA_API_URL: `${server.url}/api`, DAYTONA_API_KEY: server.key }
      const { code, output } = await runProgram(process.execPath, [name], { cwd: desk, env: { ...here, ...env } })
      assert.equal(code, 0, output)
      return output
    }

    test('image.mjs of the guide makes a snapshot with the coding agents, in the versions that the guide names', async () => {
      assert.match(await runPrinted('image.mjs'), /added \d+ packages/)
      const { dependencies } = JSON.parse(readFileSync(join(checkout, 'examples/coding-agents/package.json'), 'utf8'))
      const named = [...page.matchAll(/`(@[\w/-]+)` (\d+\.\d+\.\d+)/g)].map(([, name = '', version]) => [name, version])
      assert.deepEqual(Object.fromEntries(named), dependencies)
    })

    test('Claude Code and Codex reach their models, although the sandbox has only placeholders for their keys', async () => {
      const keys = { ANTHROPIC_API_KEY: 'the-anthropic-key', OPENAI_API_KEY: 'the-openai-key' }
      await runPrinted('keys.mjs', keys)
      const output = await runPrinted('work.mjs')
      assert.deepEqual([output.replace(/(alcove_secret_)\w+/, '$1…')], blocksOf(page, 'text'))
      const calls = said
        .split('\n')
        .filter((line) => line.startsWith('{'))
        .map((line) => JSON.parse(line) as ModelCall)
      const of = (name: string) => calls.filter(({ host }) => host === name)
      assert.ok(of('api.anthropic.com').length > 0 && of('api.openai.com').length > 0, said)
      for (const { key } of of('api.anthropic.com')) assert.equal(key, keys.ANTHROPIC_API_KEY)
      for (const { authorization } of of('api.openai.com')) assert.equal(authorization, `Bearer ${keys.OPENAI_API_KEY}`)
    })
  })
}
