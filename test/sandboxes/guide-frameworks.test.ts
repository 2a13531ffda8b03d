// Runs the programs of the guide on agent frameworks as they are printed in the guide, with the published packages. Only the model
// is simulated (scripted-model.ts).
import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { blocksOf, checkout, programsOf, readPage, runProgram } from './guide.ts'
import { installGuidePackages } from './guide-packages.ts'
import { type Platform, platform } from './harness.ts'
import { startModel, type ToolCall } from './scripted-model.ts'

const page = readPage('docs/guides/frameworks.md')
const programs = programsOf(page)

/** The tool call with which the simulated model answers, for each program of the guide that has an AI agent. */
const calls: Record<string, ToolCall> = {
  'mastra.mjs': { tool: 'mastra_workspace_execute_command', input: { command: 'echo "user $(id -un)"' } },
  'deep-agents.mjs': { tool: 'execute', input: { command: 'echo "user $(id -un)"' } },
  'openai-agents.mjs': { tool: 'exec_command', input: { cmd: 'echo "user $(id -un)"' } },
  'ai-sdk.mjs': { tool: 'bash', input: { command: 'echo "user $(id -un)"' } },
}

/** Environment variables that switch off the usage reports of the frameworks to their makers. */
const silent = { MASTRA_TELEMETRY_DISABLED: '1', OPENAI_AGENTS_DISABLE_TRACING: '1', LANGSMITH_TRACING: 'false' }

suite('the guide on agent frameworks', () => {
  let server: Platform
  const desk = mkdtempSync(join(tmpdir(), 'alcove-frameworks-'))
  before(async () => {
    symlinkSync(await installGuidePackages('frameworks'), join(desk, 'node_modules'))
    server = await platform()
  })
  after(async () => {
    rmSync(desk, { recursive: true, force: true })
    await server?.[Symbol.asyncDispose]()
  })

  const runPrinted = async (name: string, more: Record<string, string> = {}) => {
    writeFileSync(join(desk, name), programs.get(name) ?? '')
    const env = { ...silent, ...more, DAYTONA_API_URL: `${server.url}/api`, DAYTONA_API_KEY: server.key }
    const { code, output } = await runProgram(process.execPath, [name], { cwd: desk, env, timeoutMs: 90_000 })
    assert.equal(code, 0, output)
    return output
  }

  for (const [name, call] of Object.entries(calls))
    test(`program ${name} of the guide lets its AI agent run a command as the user of the sandbox`, async () => {
      await using model = await startModel(call)
      const output = await runPrinted(name, { OPENAI_API_KEY: 'none', OPENAI_BASE_URL: model.url })
      assert.match(output, /^The tool said: .*user daytona/m)
    })

  test('computesdk.mjs of the guide prints what the guide shows', async () => {
    assert.deepEqual([await runPrinted('computesdk.mjs')], blocksOf(page, 'text'))
  })

  test('these tests run every program of frameworks.md, with the versions that frameworks.md names', () => {
    assert.deepEqual([...programs.keys()].sort(), [...Object.keys(calls), 'computesdk.mjs'].sort())
    const { dependencies } = JSON.parse(readFileSync(join(checkout, 'examples/frameworks/package.json'), 'utf8'))
    const named = [...page.matchAll(/`(@?[\w/-]+)` (\d+\.\d+\.\d+)/g)]
    assert.ok(named.length >= 9)
    for (const [, name = '', version] of named) assert.equal(version, dependencies[name], name)
  })
})
