// Runs one test file, or several one after the other, in a separate process with a time limit, and returns the results.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { ReportedResult, TestResult } from './test-reporter.ts'

export type FileOutcome = {
  file: string
  results: TestResult[]
  output: string
  seconds: number
  /** Processor seconds used by the processes of the test. Processes that outlive their parent are not counted. */
  processorSeconds?: number
  /** The command that runs the test file again. */
  again: string
}

type Settings = {
  scratch: string
  env: NodeJS.ProcessEnv
  timeoutSeconds: number
  /** Only tests whose full name contains this text. Default: all. */
  name?: string | undefined
  /** Aborting this signal kills the processes of the test file. */
  signal?: AbortSignal
}

const reporter = resolve(import.meta.dirname, 'test-reporter.ts')
/**
 * Most bytes of output that are stored. Of a longer output the end is stored, because the end is the most useful part.
 */
const maxOutput = 256 * 1024

let nextReport = 0

/** The kernel counts times in /proc in hundredths of a second on every machine. */
const ticksPerSecond = 100

/**
 * Returns the processor seconds of all child processes that have ended so far. The number grows when the end of a child
 * is noticed.
 */
const childrenSeconds = (): number => {
  const stat = readFileSync('/proc/self/stat', 'utf8')
  // The name of the program is in parentheses and may hold spaces. These are the fields cutime and cstime, after the parentheses.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[13]) + Number(fields[14])) / ticksPerSecond
}

let counted = childrenSeconds()

/**
 * Returns the processor seconds since the last call. A caller that calls this at each exit of a child gets what that
 * child has used.
 */
const secondsOfEnded = (): number => {
  const before = counted
  counted = childrenSeconds()
  return counted - before
}

const readResults = (path: string): ReportedResult[] => {
  try {
    const lines = readFileSync(path, 'utf8').split('\n')
    // The last line may be incomplete if the process was killed.
    return lines.slice(0, -1).map((line) => JSON.parse(line) as ReportedResult)
  } catch {
    return []
  }
}

type ProcessEnd = {
  results: ReportedResult[]
  output: string
  seconds: number
  processorSeconds: number
  /** Why the process as a whole failed, even if every test passed. */
  trouble: string | undefined
}

const runProcess = async (
  args: readonly string[],
  settings: Settings,
  limitSeconds = settings.timeoutSeconds,
): Promise<ProcessEnd> => {
  const { scratch, env, timeoutSeconds, name, signal: stopping } = settings
  const began = performance.now()
  const report = join(scratch, `report-${nextReport++}`)
  const child = spawn(
    process.execPath,
    [
      `--test-reporter=${reporter}`,
      `--test-reporter-destination=${report}`,
      // This is less than the time limit of a file, so that a hanging test is reported and the tests after it still run.
      `--test-timeout=${timeoutSeconds * 750}`,
      ...(name === undefined ? [] : [`--test-name-pattern=${RegExp.escape(name)}`]),
      ...args,
    ],
    // `detached` makes a separate process group, so that the child processes of the test can be killed with it.
    { env, stdio: ['ignore', 'pipe', 'pipe'], detached: true },
  )
  let output = ''
  const keep = (chunk: Buffer) => {
    output = (output + chunk.toString()).slice(-maxOutput)
  }
  child.stdout.on('data', keep)
  child.stderr.on('data', keep)
  const killGroup = () => {
    try {
      process.kill(-(child.pid as number), 'SIGKILL')
    } catch {
      // An error here means that the process group is empty.
    }
  }
  let isLate = false
  const timer = setTimeout(() => {
    isLate = true
    killGroup()
  }, limitSeconds * 1000)
  stopping?.addEventListener('abort', killGroup)
  let processorSeconds = 0
  child.once('exit', () => {
    processorSeconds = secondsOfEnded()
  })
  const [code, signal] = (await once(child, 'exit')) as [number | null, string | null]
  clearTimeout(timer)
  stopping?.removeEventListener('abort', killGroup)
  // Kills processes that the tests left behind. A process that left the group may still hold the output pipes open.
  killGroup()
  child.stdout.destroy()
  child.stderr.destroy()
  const results = readResults(report)
  rmSync(report, { force: true })
  const hasFailure = results.some(({ outcome }) => outcome === 'failed')
  const trouble = isLate
    ? `did not end within ${limitSeconds} s and was killed`
    : code !== 0 && !hasFailure
      ? `ended with ${signal ?? `exit code ${code}`}`
      : undefined
  return { results, output, seconds: (performance.now() - began) / 1000, processorSeconds, trouble }
}

const commandFor = (file: string) => `./alcove test ${file}`

export const runTestFile = async (file: string, settings: Settings): Promise<FileOutcome> => {
  const { results: reported, trouble, ...rest } = await runProcess([file], settings)
  const results: TestResult[] = reported.map(({ file: _file, seconds: _seconds, ...result }) => result)
  const { name } = settings
  const detail =
    trouble ?? (results.length > 0 ? undefined : name === undefined ? 'has no tests' : `has no test named "${name}"`)
  if (detail !== undefined) results.push({ name: '(file)', outcome: 'failed', detail })
  return { file, results, ...rest, again: commandFor(file) }
}

/**
 * Runs test files one after the other in one process. If the process as a whole fails, or if a file has no tests, it is not
 * clear which file is the cause, so those files run again, each in its own process.
 */
export const runTestFiles = async (files: readonly string[], settings: Settings): Promise<FileOutcome[]> => {
  const runAlone = async (some: readonly string[]) => {
    const outcomes: FileOutcome[] = []
    for (const file of some) outcomes.push(await runTestFile(file, settings))
    return outcomes
  }
  if (files.length < 2) return await runAlone(files)
  const { results, output, trouble, processorSeconds } = await runProcess(
    ['--test', '--test-isolation=none', ...files],
    settings,
    settings.timeoutSeconds * Math.min(files.length, 3),
  )
  const byFile = Map.groupBy(results, ({ file }) => file)
  const isClear = (file: string) => {
    // Node reports a file that has no tests, or cannot be loaded, as one test with the name of the file.
    const own = byFile.get(resolve(file)) ?? []
    return trouble === undefined && own.length > 0 && own.every(({ name }) => resolve(name) !== resolve(file))
  }
  const unclear = files.filter((file) => !isClear(file))
  const clear = files.filter((file) => !unclear.includes(file))
  const allSeconds = results.reduce((sum, { seconds }) => sum + seconds, 0)
  const outcomes = clear.map((file): FileOutcome => {
    const own = byFile.get(resolve(file)) ?? []
    const seconds = own.reduce((sum, result) => sum + result.seconds, 0)
    return {
      file,
      results: own.map(({ file: _file, seconds: _seconds, ...result }) => result),
      output,
      seconds,
      // An estimate: the file's part of the process's time.
      processorSeconds: allSeconds === 0 ? 0 : (processorSeconds * seconds) / allSeconds,
      again: commandFor(file),
    }
  })
  return [...outcomes, ...(await runAlone(unclear))]
}
