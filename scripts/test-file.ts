// Runs test files in a separate process with a time limit, one file after the other, and returns the results.
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
  /** Processor seconds that the processes of the test have used. A process that has outlived its parent is not counted. */
  processorSeconds?: number
  /** The command with which a person can run the test file again. */
  again: string
}

type Settings = {
  scratch: string
  env: NodeJS.ProcessEnv
  timeoutSeconds: number
  /** Only tests whose full name contains this text run. Default: all tests. */
  name?: string | undefined
  /** When this signal aborts, the processes of the test file are killed. */
  signal?: AbortSignal
}

const reporter = resolve(import.meta.dirname, 'test-reporter.ts')
/** Maximum length of the kept output. The end is kept, because it is the most useful part. */
const maxOutput = 256 * 1024

let nextReport = 0

/** /proc has processor times in hundredths of a second, on every machine. */
const ticksPerSecond = 100

/** Returns the processor seconds of all child processes whose end this process has noticed. */
const childrenSeconds = (): number => {
  const stat = readFileSync('/proc/self/stat', 'utf8')
  // The program's name is in parentheses and may contain spaces. The fields cutime and cstime come after the name.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[13]) + Number(fields[14])) / ticksPerSecond
}

let counted = childrenSeconds()

/** Returns the processor seconds of the child processes that have ended since the last call. */
const secondsOfEnded = (): number => {
  const before = counted
  counted = childrenSeconds()
  return counted - before
}

const readResults = (path: string): ReportedResult[] => {
  try {
    const lines = readFileSync(path, 'utf8').split('\n')
    // If the process was killed, the last line may not be complete, so it is left out.
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
  /** Why the process failed, apart from tests that failed in it. Undefined if it did not fail. */
  trouble: string | undefined
}

/**
 * Returns the Node options for test files. With more memory for new objects, garbage collection takes less time.
 * Files that measure the memory of their process keep Node's default.
 */
const optionsFor = (files: readonly string[]): string[] => {
  const measures = files.some((file) => /memoryUsage|VmRSS/.test(readFileSync(file, 'utf8')))
  return measures ? [] : ['--max-semi-space-size=64']
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
      // Three quarters of the time limit of the file. A test that never ends is reported, and the tests after it still run.
      `--test-timeout=${timeoutSeconds * 750}`,
      ...(name === undefined ? [] : [`--test-name-pattern=${RegExp.escape(name)}`]),
      ...args,
    ],
    // The option `detached` makes a process group, so that the child processes of the test file can be killed with it.
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
      // An error here means that the process group is empty, so there is nothing to kill.
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
  // Kills processes that the tests left running. Processes outside the group may still hold the pipes, so the pipes are closed.
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
  const { results: reported, trouble, ...rest } = await runProcess([...optionsFor([file]), file], settings)
  const results: TestResult[] = reported.map(({ file: _file, seconds: _seconds, ...result }) => result)
  const { name } = settings
  const detail =
    trouble ?? (results.length > 0 ? undefined : name === undefined ? 'has no tests' : `has no test named "${name}"`)
  if (detail !== undefined) results.push({ name: '(file)', outcome: 'failed', detail })
  return { file, results, ...rest, again: commandFor(file) }
}

/**
 * Runs test files in one process. Then runs each file with an unclear result again, in a process of its own.
 * A result is unclear if the file has no tests or cannot be loaded. If the process fails, all results are unclear.
 */
export const runTestFiles = async (files: readonly string[], settings: Settings): Promise<FileOutcome[]> => {
  const runAlone = async (some: readonly string[]) => {
    const outcomes: FileOutcome[] = []
    for (const file of some) outcomes.push(await runTestFile(file, settings))
    return outcomes
  }
  if (files.length < 2) return await runAlone(files)
  const { results, output, trouble, processorSeconds } = await runProcess(
    [...optionsFor(files), '--test', '--test-isolation=none', ...files],
    settings,
    settings.timeoutSeconds * Math.min(files.length, 3),
  )
  const byFile = Map.groupBy(results, ({ file }) => file)
  const isClear = (file: string) => {
    // If a file has no tests or cannot be loaded, Node reports one test with the name of the file.
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
      // An estimate: the processor time of the whole process, multiplied by this file's share of the total duration.
      processorSeconds: allSeconds === 0 ? 0 : (processorSeconds * seconds) / allSeconds,
      again: commandFor(file),
    }
  })
  return [...outcomes, ...(await runAlone(unclear))]
}
