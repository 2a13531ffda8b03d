// Mutation testing of one folder: makes N random changes, one after the other, and runs the nearest tests for each change.
// The script works in a copy of the checkout, and prints the changes for which no test failed.
// Example: node scripts/mutate.ts src/control/webhooks --count 25 --seed 1
import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { applied, isCode, type Mutation, mutationsOf, randomOf } from './mutation-points.ts'
import { runTestFile } from './test-file.ts'
import { needsOf, reachableFrom } from './test-needs.ts'
import { hasFailed } from './test-report.ts'

const root = resolve(import.meta.dirname, '..')
process.chdir(root)

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    count: { type: 'string', default: '25' },
    seed: { type: 'string', default: '1' },
    /** True: runs only tests that need no program and no database, and changes only source files that these tests import. */
    pure: { type: 'boolean', default: false },
    /** Time limit of one test file, in seconds. */
    seconds: { type: 'string', default: '120' },
    /** Maximum number of test files that run for each mutation (one change of the code). */
    files: { type: 'string', default: '6' },
  },
})
const [room = ''] = positionals
const [count, seed, seconds, mostFiles] = [values.count, values.seed, values.seconds, values.files].map(Number)
if (!existsSync(room) || ![count, seed, seconds, mostFiles].every(Number.isSafeInteger)) {
  console.error('usage: node scripts/mutate.ts FOLDER [--pure] [--count N] [--seed N] [--seconds N] [--files N]')
  process.exit(1)
}

const tests = globSync('{src,test}/**/*.test.ts')
  .filter((path) => !values.pure || needsOf(path).size === 0)
  .sort()
/** Lists at most `mostFiles` test files that load a source file, nearest first. */
const nearestTests = (source: string): string[] => {
  const [folder, name] = [dirname(source), basename(source, '.ts')]
  const beside = tests.filter((path) => dirname(path) === folder)
  const named = beside.filter((path) => basename(path).startsWith(name))
  const importing = tests.filter((path) => readFileSync(path, 'utf8').includes(`/${name}.ts'`))
  const above = tests.filter((path) => dirname(path) === dirname(folder))
  const near = [named, beside, importing, above].flat().filter((path) => reachableFrom(path).has(source))
  return [...new Set(near)].slice(0, mostFiles)
}

const sources = globSync(`${room}/**/*.ts`)
  .filter((path) => !path.endsWith('.test.ts') && !/\/(?:testing|migrations)\//.test(path))
  .filter((path) => !values.pure || nearestTests(path).length > 0)
  .sort()

type Change = { source: string; mutation: Mutation }

const choose = (): Change[] => {
  const all = sources.flatMap((source) =>
    mutationsOf(readFileSync(source, 'utf8')).map((mutation): Change => ({ source, mutation })),
  )
  const random = randomOf(seed!)
  console.log(`${room}: ${sources.length} files, ${all.length} points, seed ${seed}`)
  const chosen: Change[] = []
  while (chosen.length < count! && all.length > 0) {
    const [change] = all.splice(Math.floor(random() * all.length), 1)
    if (change && isCode(applied(readFileSync(change.source, 'utf8'), change.mutation))) chosen.push(change)
  }
  return chosen
}

/** Copies the checkout. The copy is complete, because confined programs see only their own checkout. */
const copyCheckout = (): string => {
  mkdirSync('.alcove', { recursive: true })
  const copy = mkdtempSync(join(root, '.alcove/mutants-'))
  const files = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
    encoding: 'utf8',
  })
  for (const path of [...files.split('\0'), 'agent/build', 'native/build'])
    if (path !== '' && existsSync(path)) cpSync(path, join(copy, path), { recursive: true, preserveTimestamps: true })
  execFileSync('cp', ['-al', 'node_modules', join(copy, 'node_modules')])
  return copy
}

const where = ({ source, mutation }: Change): string => {
  const before = readFileSync(join(root, source), 'utf8').slice(0, mutation.start)
  const line = readFileSync(join(root, source), 'utf8').split('\n')[before.split('\n').length - 1]
  return `${source}:${before.split('\n').length}  ${mutation.what}  | ${line?.trim()}`
}

const copy = copyCheckout()
const remove = () => rmSync(copy, { recursive: true, force: true })
/** Kills the tests that run now, with their child processes. Each test is the leader of a process group. */
const endTests = () => {
  const children = readFileSync(`/proc/self/task/${process.pid}/children`, 'utf8').split(' ').filter(Boolean)
  for (const pid of children) {
    try {
      process.kill(-pid, 'SIGKILL')
    } catch {
      // The call `kill` found no process group with this number: the child process is no test, or it has ended.
    }
  }
}
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => {
    endTests()
    remove()
    process.exit(1)
  })

try {
  process.chdir(copy)
  const scratch = join(copy, '.alcove')
  mkdirSync(scratch)
  const changes = choose()
  const needsDatabase = changes.some(({ source }) => nearestTests(source).some((test) => needsOf(test).has('database')))
  await using open = new AsyncDisposableStack()
  const database = needsDatabase
    ? await (await import('#test/control/test-postgres.ts')).startTestPostgres()
    : undefined
  open.defer(() => database?.stop())
  const env = { ...process.env, NODE_COMPILE_CACHE: join(scratch, 'compiled'), ALCOVE_TEST_DATABASE_URL: database?.url }
  const isRed = async (test: string): Promise<boolean> =>
    hasFailed(await runTestFile(test, { scratch, env, timeoutSeconds: seconds! }))
  /** For each test file: whether it fails with the unchanged source. If so, its failure with a change proves nothing. */
  const redAnyway = new Map<string, boolean>()

  const survivors: string[] = []
  for (const [n, change] of changes.entries()) {
    const { source, mutation } = change
    let killer: string | undefined
    let run = 0
    for (const test of nearestTests(source)) {
      if (!redAnyway.has(test)) redAnyway.set(test, await isRed(test))
      if (redAnyway.get(test)) continue
      const sound = readFileSync(source, 'utf8')
      writeFileSync(source, applied(sound, mutation))
      run += 1
      const isKilled = await isRed(test).finally(() => writeFileSync(source, sound))
      if (!isKilled) continue
      killer = test
      break
    }
    const verdict = killer === undefined ? `SURVIVED ${run} files` : `killed by ${killer}`
    console.log(`${n + 1}/${changes.length} ${verdict}: ${where(change)}`)
    if (killer === undefined) survivors.push(where(change))
  }
  console.log(`\n${room}, seed ${seed}: ${survivors.length} of ${changes.length} survived\n${survivors.join('\n')}`)
} finally {
  remove()
}
