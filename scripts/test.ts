// `./alcove test`: everything that has to hold, in order of cost. The last line is `N passed, N failed`.
//   1 format, lint, types
//   2 tests beside the code, in parallel: real PostgreSQL, real C programs under sanitizers, no sandboxes of a server
//   3 tests with a real server and real sandboxes, one file after the other
// A file that fails is run a second time, alone, and both are told: the machine is shared, and a race should be seen
// without stopping everything.
import { spawnSync } from 'node:child_process'
import { globSync, mkdtempSync, rmSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { requiredPackages } from '#src/doctor/packages.ts'
import { readUpConfig } from '#src/up/config.ts'
import { buildNativePrograms } from '#src/up/native-programs.ts'
import { ensurePackages, hostNeeding } from '#src/up/system-packages.ts'
import { type FileOutcome, runTestFile } from './test-file.ts'
import { testPackages } from './test-packages.ts'
import type { TestResult } from './test-reporter.ts'
import { purgeBelow, startSharedPlatform, startTestPostgres } from './test-server.ts'

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

/** Runs some at a time; each as soon as there is room. */
const runAll = async (files: readonly string[], atOnce: number, run: (file: string) => Promise<FileOutcome>) => {
  const waiting = [...files]
  const failed: FileOutcome[] = []
  const work = async () => {
    for (let file = waiting.shift(); file !== undefined; file = waiting.shift()) {
      const outcome = await run(file)
      if (hasFailed(outcome)) failed.push(outcome)
      else tell(outcome)
    }
  }
  await Promise.all(Array.from({ length: atOnce }, work))
  for (const first of failed) {
    if (firstRuns.length >= mostSecondRuns || failed.length > mostSecondRuns) tell(first)
    else {
      firstRuns.push(first)
      tell(await run(first.file))
    }
  }
}

const runBesideTheCode = async (scratch: string) => {
  const files = find('{src,agent,native,bin,scripts,bench,test}/**/*.test.ts', ['test/sandboxes/**'])
  if (files.length === 0) return
  const database = await startTestPostgres(scratch)
  try {
    const env = { ...process.env, ALCOVE_TEST_DATABASE_URL: database.url }
    await runAll(files, availableParallelism(), (file) => runTestFile(file, { scratch, env, timeoutSeconds: 180 }))
  } finally {
    await database.stop()
  }
}

const runWithSandboxes = async (scratch: string) => {
  const files = find('test/sandboxes/**/*.test.ts')
  if (files.length === 0) return
  if (!isRoot) {
    const results: TestResult[] = [{ name: '(file)', outcome: 'skipped', detail: 'real sandboxes need root' }]
    for (const file of files) tell({ file, results, output: '', seconds: 0 })
    return
  }
  const servers = join(scratch, 'servers')
  const began = performance.now()
  const seconds = () => (performance.now() - began) / 1000
  try {
    const server = await startSharedPlatform(join(servers, 'shared'))
    const env = { ...process.env, ALCOVE_TEST_SERVER: join(servers, 'shared'), ALCOVE_TEST_SERVERS: servers }
    await runAll(files, 1, (file) => runTestFile(file, { scratch, env, timeoutSeconds: 300 }))
    const ended = new Promise((done) => server.once('exit', done))
    if (server.kill('SIGTERM')) await ended
  } catch (error) {
    const results: TestResult[] = [{ name: 'the shared server', outcome: 'failed', detail: String(error) }]
    tell({ file: 'alcove up', results, output: '', seconds: seconds() })
  } finally {
    const left = await purgeBelow(servers).catch((error: Error) => [error.message])
    const results: TestResult[] = [
      left.length === 0
        ? { name: 'nothing is left on the host', outcome: 'passed' }
        : { name: 'nothing is left on the host', outcome: 'failed', detail: left.join('\n') },
    ]
    tell({ file: 'alcove purge', results, output: '', seconds: seconds() })
  }
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
    await runBesideTheCode(scratch)
    await runWithSandboxes(scratch)
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
}
process.exit(summarize() === 0 ? 0 : 1)
