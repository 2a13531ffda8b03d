// `./alcove test`: runs all checks and tests. The last line is `N passed, N failed`.
//   1 while packages are installed: format, lint, types and tests of pure code
//   2 tests that may run at the same time: beside the code, and with real sandboxes (test-plan.ts)
//   3 tests that measure the host's memory or check a time, one after the other
// Some test files share a process (test-batches.ts).
// If few of several files fail, each of them runs a second time alone, and both results are reported.
// So a race on a busy machine is visible, but does not stop the run.
// With paths, only what the files need is built and started (test-needs.ts); format, lint and types are skipped.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, globSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { enableCompileCache } from 'node:module'
import { availableParallelism, cpus, tmpdir } from 'node:os'
import { join, relative, resolve } from 'node:path'
import { text } from 'node:stream/consumers'
import { parseArgs } from 'node:util'
import { writeDashboardTypes } from './dashboard-types.ts'
import type { Batch } from './test-batches.ts'
import { type FileOutcome, runTestFile, runTestFiles } from './test-file.ts'
import { type Lanes, runInLanes } from './test-lanes.ts'
import { needsOf } from './test-needs.ts'
import { needsServer, planOf, sharesServer } from './test-plan.ts'
import { countOf, hasFailed, lineOf, type Red, redLine, redTests, type Verdict } from './test-report.ts'
import type { TestResult } from './test-reporter.ts'

const root = resolve(import.meta.dirname, '..')
process.chdir(root)

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { check: { type: 'boolean', default: false }, name: { type: 'string' } },
})
const filters = positionals.map((part) => (/^\.{0,2}\//.test(part) ? relative(root, resolve(part)) : part))
const isCi = process.env['CI'] === 'true'
const isRoot = process.getuid?.() === 0
const isWhole = filters.length === 0
const outcomes: FileOutcome[] = []

/**
 * Aborts at the first SIGINT or SIGTERM. Running test files are then killed, and servers stopped. The second signal
 * kills this process.
 */
const stopping = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => {
    console.log(`Stopping the tests (${signal}) …`)
    stopping.abort()
  })

/** Directory in which Node stores compiled code, which makes the next test run faster. */
const compiled = join(root, '.alcove/compiled-tests')

const tell = (outcome: FileOutcome) => {
  outcomes.push(outcome)
  console.log(lineOf(outcome))
  // Prints the failures of this file immediately. The report at the end (`sayRed`) prints them a second time.
  for (const red of redTests(outcome)) console.log(`     ${redLine(red)}`)
}

/** Runs a command, such as the linter, and counts it as one test. */
const runCheck = async (file: string, command: string, args: string[]) => {
  const began = performance.now()
  const path = `${join(process.execPath, '..')}:${process.env['PATH']}`
  const child = spawn(join(root, 'node_modules/.bin', command), args, {
    // tsc needs 1.3 GiB. Its garbage collector would take a third of its time, so GOGC switches the collector off.
    env: { ...process.env, PATH: path, GOGC: 'off' },
    signal: stopping.signal,
  })
  const [output, detail] = await Promise.all([
    Promise.all([text(child.stdout), text(child.stderr)]).then((streams) => streams.join('')),
    once(child, 'exit').then(
      ([code, signal]) => (code === 0 ? undefined : `ended with ${signal ?? `exit code ${code}`}`),
      (error: Error) => error.message,
    ),
  ])
  const results: TestResult[] = [
    detail === undefined ? { name: file, outcome: 'passed' } : { name: file, outcome: 'failed', detail },
  ]
  tell({ file, results, output, seconds: (performance.now() - began) / 1000, again: './alcove test --check' })
}

/**
 * Options of tsc. Several threads check some types twice, and need twice the processor time. So tsc gets one thread, and tests use
 * the other processors.
 */
const singleThreaded = ['--noEmit', '--singleThreaded']

const runChecks = async () => {
  await runCheck('format and lint', 'biome', ['ci', '--colors=off'])
  await runCheck('types', 'tsc', ['-p', root, ...singleThreaded])
  writeDashboardTypes()
  await runCheck('types of the dashboard', 'tsc', ['-p', join(root, 'dashboard'), ...singleThreaded])
}

const testFiles = '{src,agent,native,bin,scripts,bench,test,client/src,dashboard/src}/**/*.test.ts'

const isTestFile = (path: string) => path.endsWith('.test.ts') && existsSync(path)

const findFiles = (): string[] => {
  if (!isWhole && filters.every(isTestFile)) return [...new Set(filters)]
  const all = globSync(testFiles, { exclude: ['node_modules/**'] }).sort()
  const unknown = filters.filter((filter) => !all.some((file) => file.includes(filter)))
  if (unknown.length > 0) {
    console.error(`no test file has ${unknown.map((filter) => `"${filter}"`).join(' or ')} in its path`)
    process.exit(1)
  }
  return all.filter((file) => isWhole || filters.some((filter) => file.includes(filter)))
}

/** Maximum number of files that run a second time. If more files have failed, a busy machine cannot be the only reason. */
const mostSecondRuns = 3
const firstRuns = new Map<string, FileOutcome>()

/** Runs all files in the lanes. After that, each file that has failed runs a second time, while no other file runs. */
const runEach = async (lanes: Lanes, run: (batch: Batch) => Promise<FileOutcome[]>) => {
  const failed: FileOutcome[] = []
  await runInLanes(lanes, async (batch) => {
    if (stopping.signal.aborted) return
    for (const outcome of await run(batch)) {
      if (hasFailed(outcome) && files.length > 1) failed.push(outcome)
      else tell(outcome)
    }
  })
  for (const first of failed) {
    if (failed.length > mostSecondRuns || stopping.signal.aborted) tell(first)
    else {
      firstRuns.set(first.file, first)
      for (const outcome of await run([first.file])) tell(outcome)
    }
  }
}

const runTests = async (files: readonly string[], scratch: string, prepared: Promise<void>) => {
  const runnable = files.filter((file) => isRoot || !needsServer(file))
  for (const file of files.filter((file) => !runnable.includes(file))) {
    const results: TestResult[] = [{ name: '(file)', outcome: 'skipped', detail: 'real sandboxes need root' }]
    tell({ file, results, output: '', seconds: 0, again: '' })
  }
  // With `--name`, test files share no processes. Most files run no test then, so sharing is not worth the effort.
  const plan = planOf(runnable, { processors: availableParallelism(), sharesProcesses: values.name === undefined })
  const servers = join(scratch, 'servers')
  mkdirSync(servers)
  const database = runnable.some((file) => needsOf(file).has('database'))
    ? prepared.then(async () => (await import('#test/control/test-postgres.ts')).startTestPostgres())
    : undefined
  const server = runnable.some(sharesServer)
    ? prepared.then(async () =>
        (await import('./test-server.ts')).startSharedPlatform(join(servers, 'shared'), stopping.signal),
      )
    : undefined
  const whyNoServer = server?.then(
    () => undefined,
    (error: Error) => `the shared server: ${error.message}`,
  )
  database?.catch(() => {})
  const common = { scratch, name: values.name, signal: stopping.signal }
  const run = async (batch: Batch): Promise<FileOutcome[]> => {
    const [file] = batch
    if (file === undefined) return []
    if (needsOf(file).size > 0) await prepared
    const url = needsOf(file).has('database') ? (await database)?.url : undefined
    const env = { ...process.env, NODE_COMPILE_CACHE: compiled, ALCOVE_TEST_DATABASE_URL: url }
    if (!needsServer(file)) return await runTestFiles(batch, { ...common, env, timeoutSeconds: 300 })
    const detail = sharesServer(file) ? await whyNoServer : undefined
    if (detail) {
      const results: TestResult[] = [{ name: '(file)', outcome: 'failed', detail }]
      return [{ file, results, output: '', seconds: 0, again: `./alcove test ${file}` }]
    }
    const places = { ALCOVE_TEST_SERVER: join(servers, 'shared'), ALCOVE_TEST_SERVERS: servers }
    return [await runTestFile(file, { ...common, env: { ...env, ...places }, timeoutSeconds: 450 })]
  }
  try {
    const [first, ...later] = plan
    await Promise.all([prepared, isWhole ? runChecks() : undefined, runEach(first, run)])
    for (const lanes of later) await runEach(lanes, run)
  } finally {
    await server?.then(({ stop }) => stop()).catch(() => {})
    await database?.then(({ stop }) => stop()).catch(() => {})
    if (runnable.some(needsServer)) tell(await purgeServers(servers))
  }
}

const purgeServers = async (servers: string): Promise<FileOutcome> => {
  const began = performance.now()
  const { purgeBelow } = await import('./test-server.ts')
  const left = await purgeBelow(servers).catch((error: Error) => [error.message])
  const name = 'nothing is left on the host'
  const result: TestResult =
    left.length === 0 ? { name, outcome: 'passed' } : { name, outcome: 'failed', detail: left.join('\n') }
  const seconds = (performance.now() - began) / 1000
  return { file: 'alcove purge', results: [result], output: '', seconds, again: `./alcove test test/sandboxes` }
}

const sayDetails = ({ verdict, file, name, detail }: Red) => console.log(`\n${verdict} ${file}: ${name}\n${detail}`)

/** Prints the details of all failures. Then prints one line for each failure, so that the output ends with a summary. */
const sayRed = (): void => {
  const red = outcomes.flatMap((last) => {
    const tests = redTests(last, firstRuns.get(last.file))
    for (const test of tests) sayDetails(test)
    const said = (hasFailed(last) ? last : firstRuns.get(last.file))?.output.trim() ?? ''
    if (tests.length > 0 && said !== '') console.log(`--- what ${last.file} printed:\n${said}`)
    return tests
  })
  const meanings: Record<Verdict, string> = {
    FAILED: '',
    'FAILED TWICE': ', the second time alone',
    'FAILED AT FIRST': ' and passed alone, so it has a race to be mended',
  }
  for (const [verdict, meaning] of Object.entries(meanings)) {
    const some = red.filter((test) => test.verdict === verdict)
    if (some.length > 0) console.log(`\n${verdict}${meaning}:`)
    for (const test of some) console.log(`  ${redLine(test)}`)
  }
}

const summarize = (): number => {
  const all = outcomes.flatMap(({ file, results }) => results.map((result) => ({ file, ...result })))
  const skipped = all.filter(({ outcome }) => outcome === 'skipped')
  // In CI, nothing that tests need may be missing. A test that was skipped because it needs root therefore counts as
  // failed.
  const refused = isCi ? skipped.filter(({ detail }) => /needs? root/i.test(detail ?? '')) : []
  if (skipped.length > 0) console.log(`\nSKIPPED ${skipped.length}:`)
  for (const { file, name, detail } of skipped) console.log(`  ${file}: ${name}: ${detail}`)
  sayRed()
  for (const { file, name } of refused) console.log(`\nFAILED ${file}: ${name}: skipped, though CI runs as root`)
  const failed = countOf(all, 'failed') + refused.length
  console.log(`\n${countOf(all, 'passed')} passed, ${failed} failed`)
  return failed
}

class NotPrepared extends Error {}

/**
 * Prepares this machine in a separate process (test-system.ts). At the same time, this process can run tests that need no
 * preparation.
 */
const prepareSystem = async () => {
  const child = spawn(process.execPath, [join(import.meta.dirname, 'test-system.ts')], { stdio: 'inherit' })
  const [code] = (await once(child, 'exit')) as [number | null]
  if (code !== 0) throw new NotPrepared('the tests cannot run; the reason stands above')
}

/** Returns the idle seconds of all processors together. If there are many idle seconds, test files have waited for each other. */
const idleSeconds = () => cpus().reduce((sum, { times }) => sum + times.idle, 0) / 1000

const files = findFiles()
// A run of all tests empties Node's cache of compiled code, which would otherwise grow for ever.
if (isWhole) rmSync(compiled, { recursive: true, force: true })
enableCompileCache(compiled)
const began = { at: performance.now(), idle: idleSeconds() }
if (values.check) await runChecks()
else {
  const scratch = mkdtempSync(join(tmpdir(), 'alcove-test-'))
  try {
    const needsSystem = files.some((file) => needsOf(file).has('programs'))
    await runTests(files, scratch, needsSystem ? prepareSystem() : Promise.resolve())
  } catch (error) {
    if (!(error instanceof NotPrepared)) throw error
    console.error(error.message)
    process.exitCode = 1
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
}
if (isWhole) {
  const seconds = (performance.now() - began.at) / 1000
  const idle = (idleSeconds() - began.idle) / (seconds * cpus().length)
  console.log(`\n${seconds.toFixed(0)} s, in which the processors were idle for ${(idle * 100).toFixed(0)} %`)
}
process.exit(process.exitCode ?? (summarize() === 0 ? 0 : 1))
