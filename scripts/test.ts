// `./alcove test`: everything that has to hold, in order of cost. The last line is `N passed, N failed`.
//   1 format, lint, types
//   2 in lanes beside each other: tests beside the code (real PostgreSQL, real C programs under sanitizers) and tests with
//     real sandboxes. Files that share a server run one after the other; the rest start what they need.
//   3 alone, one after the other: tests that measure the whole machine
// A file that fails is run a second time, alone, and both are told: the machine is shared, and a race should be seen
// without stopping everything.
import { spawnSync } from 'node:child_process'
import { globSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { requiredPackages } from '#src/doctor/packages.ts'
import { readUpConfig } from '#src/up/config.ts'
import { buildNativePrograms } from '#src/up/native-programs.ts'
import { ensurePackages, hostNeeding } from '#src/up/system-packages.ts'
import { startTestPostgres } from '#test/control/test-postgres.ts'
import { type FileOutcome, runTestFile } from './test-file.ts'
import { type Queue, runInLanes } from './test-lanes.ts'
import { testPackages } from './test-packages.ts'
import type { TestResult } from './test-reporter.ts'
import { purgeBelow, startSharedPlatform } from './test-server.ts'

const root = resolve(import.meta.dirname, '..')
process.chdir(root)

const { values, positionals: filters } = parseArgs({
  allowPositionals: true,
  options: { check: { type: 'boolean', default: false } },
})
const isCi = process.env['CI'] === 'true'
const isRoot = process.getuid?.() === 0
const outcomes: FileOutcome[] = []

const countOf = (results: readonly TestResult[], outcome: TestResult['outcome']) =>
  results.filter((result) => result.outcome === outcome).length

const tell = (outcome: FileOutcome) => {
  outcomes.push(outcome)
  const failed = countOf(outcome.results, 'failed')
  const counts = (['passed', 'failed', 'skipped'] as const)
    .map((kind) => [countOf(outcome.results, kind), kind] as const)
    .filter(([count]) => count > 0)
    .map(([count, kind]) => `${count} ${kind}`)
  console.log(
    `${failed > 0 ? 'FAIL' : 'ok  '} ${outcome.file}  ${counts.join(', ')}  (${outcome.seconds.toFixed(1)} s)`,
  )
}

/** A command counts as one test. */
const runCheck = (file: string, command: string, args: string[]) => {
  const began = performance.now()
  const { status, stdout, stderr, error } = spawnSync(join(root, 'node_modules/.bin', command), args, {
    encoding: 'utf8',
    env: { ...process.env, PATH: `${join(process.execPath, '..')}:${process.env['PATH']}` },
  })
  const output = `${stdout ?? ''}${stderr ?? ''}${error?.message ?? ''}`
  const results: TestResult[] = [
    status === 0 ? { name: file, outcome: 'passed' } : { name: file, outcome: 'failed', detail: `exit code ${status}` },
  ]
  tell({ file, results, output, seconds: (performance.now() - began) / 1000 })
}

const wanted = (file: string) => filters.length === 0 || filters.some((filter) => file.includes(filter))

const find = (pattern: string, exclude: string[] = []) =>
  globSync(pattern, { exclude: ['node_modules/**', ...exclude] })
    .filter(wanted)
    .sort()

const hasFailed = ({ results }: FileOutcome) => countOf(results, 'failed') > 0

/** What failed beside others is run again alone, unless so much failed that it cannot be the machine's other work. */
const mostSecondRuns = 3
const firstRuns: FileOutcome[] = []

/** Runs what is in the lanes, and then alone and once more what failed beside others. */
const runEach = async (lanes: readonly (readonly Queue[])[], run: (file: string) => Promise<FileOutcome>) => {
  const failed: FileOutcome[] = []
  await runInLanes(lanes, async (file) => {
    const outcome = await run(file)
    if (hasFailed(outcome)) failed.push(outcome)
    else tell(outcome)
  })
  for (const first of failed) {
    if (failed.length > mostSecondRuns) tell(first)
    else {
      firstRuns.push(first)
      tell(await run(first.file))
    }
  }
}

const sandboxTests = 'test/sandboxes/'

/** `platform()` alone answers the server that is started here; whoever needs one of its own asks for it. */
const sharesServer = (file: string) => /\bplatform\(\)/.test(readFileSync(file, 'utf8'))

/** They measure what the whole machine does, or promise a time: nothing else runs beside them. */
const runsAlone = (file: string) =>
  ['busy', 'kernel-memory', 'slow-readers'].some((name) => file === `${sandboxTests}${name}.test.ts`)

const testFiles = '{src,agent,native,bin,scripts,bench,test}/**/*.test.ts'

const runTests = async (scratch: string) => {
  const code: Queue = find(testFiles, [`${sandboxTests}**`])
  const withSandboxes = find(`${sandboxTests}**/*.test.ts`)
  if (!isRoot) {
    const results: TestResult[] = [{ name: '(file)', outcome: 'skipped', detail: 'real sandboxes need root' }]
    for (const file of withSandboxes.splice(0)) tell({ file, results, output: '', seconds: 0 })
  }
  const sharing = withSandboxes.filter(sharesServer)
  const alone: Queue = withSandboxes.filter(runsAlone)
  const shared: Queue = sharing.filter((file) => !runsAlone(file))
  const own: Queue = withSandboxes.filter((file) => !sharesServer(file) && !runsAlone(file))

  const servers = join(scratch, 'servers')
  mkdirSync(servers)
  const database = code.length > 0 ? await startTestPostgres() : undefined
  const server = sharing.length > 0 ? startSharedPlatform(join(servers, 'shared')) : undefined
  const whyNoServer = server?.then(
    () => undefined,
    (error: Error) => `the shared server: ${error.message}`,
  )
  const env = {
    ...process.env,
    // What Node has made of our code for one file, it need not make again for the next.
    NODE_COMPILE_CACHE: join(scratch, 'compiled'),
    ALCOVE_TEST_DATABASE_URL: database?.url,
  }
  const run = async (file: string): Promise<FileOutcome> => {
    if (!file.startsWith(sandboxTests)) return await runTestFile(file, { scratch, env, timeoutSeconds: 300 })
    const detail = sharing.includes(file) ? await whyNoServer : undefined
    if (detail) return { file, results: [{ name: '(file)', outcome: 'failed', detail }], output: '', seconds: 0 }
    const places = { ALCOVE_TEST_SERVER: join(servers, 'shared'), ALCOVE_TEST_SERVERS: servers }
    return await runTestFile(file, { scratch, env: { ...env, ...places }, timeoutSeconds: 450 })
  }
  try {
    // One more than there are processors, because all of them also wait.
    const lanes = Array.from({ length: availableParallelism() }, () => [code, own])
    await runEach([[shared, own, code], ...lanes], run)
    await runEach([[alone]], run)
  } finally {
    await server?.then(({ stop }) => stop()).catch(() => {})
    await database?.stop()
    if (withSandboxes.length > 0) tell(await purgeServers(servers))
  }
}

const purgeServers = async (servers: string): Promise<FileOutcome> => {
  const began = performance.now()
  const left = await purgeBelow(servers).catch((error: Error) => [error.message])
  const name = 'nothing is left on the host'
  const result: TestResult =
    left.length === 0 ? { name, outcome: 'passed' } : { name, outcome: 'failed', detail: left.join('\n') }
  return { file: 'alcove purge', results: [result], output: '', seconds: (performance.now() - began) / 1000 }
}

const sayFailures = (verb: string, { file, results, output }: FileOutcome) => {
  const failures = results.filter(({ outcome }) => outcome === 'failed')
  for (const { name, detail } of failures) console.log(`\n${verb} ${file}: ${name}\n${detail}`)
  if (failures.length > 0 && output.trim() !== '') console.log(`--- what ${file} printed:\n${output.trim()}`)
}

const summarize = (): number => {
  const all = outcomes.flatMap(({ file, results }) => results.map((result) => ({ file, ...result })))
  const skipped = all.filter(({ outcome }) => outcome === 'skipped')
  // Where everything is expected to be there, a test that could not run has not passed.
  const refused = isCi ? skipped.filter(({ detail }) => /needs? root/i.test(detail ?? '')) : []
  if (skipped.length > 0) console.log(`\nSKIPPED ${skipped.length}:`)
  for (const { file, name, detail } of skipped) console.log(`  ${file}: ${name}: ${detail}`)
  for (const first of firstRuns) sayFailures('FAILED AT FIRST, so it has a race to be mended:', first)
  for (const outcome of outcomes) sayFailures('FAILED', outcome)
  for (const { file, name } of refused) console.log(`\nFAILED ${file}: ${name}: skipped, though CI runs as root`)
  const failed = countOf(all, 'failed') + refused.length
  console.log(`\n${countOf(all, 'passed')} passed, ${failed} failed`)
  return failed
}

const unknown = filters.filter(
  (filter) => !globSync(testFiles, { exclude: ['node_modules/**'] }).some((file) => file.includes(filter)),
)
if (unknown.length > 0) {
  console.error(`no test file has ${unknown.map((filter) => `"${filter}"`).join(' or ')} in its path`)
  process.exit(1)
}
if (isRoot) ensurePackages(console.log, hostNeeding([...requiredPackages, ...testPackages]))
if (filters.length === 0) {
  runCheck('format and lint', 'biome', ['ci', '--colors=off'])
  runCheck('types', 'tsc', ['--noEmit', '-p', root])
}
if (!values.check) {
  readUpConfig(process.env)
  buildNativePrograms(console.log)
  const scratch = mkdtempSync(join(tmpdir(), 'alcove-test-'))
  try {
    await runTests(scratch)
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
}
process.exit(summarize() === 0 ? 0 : 1)
