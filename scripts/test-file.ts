// Runs one test file in a separate process with a time limit and returns its results.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { TestResult } from './test-reporter.ts'

export type FileOutcome = {
  file: string
  results: TestResult[]
  output: string
  seconds: number
  /** The command that runs it again. */
  again: string
}

type Settings = {
  scratch: string
  env: NodeJS.ProcessEnv
  timeoutSeconds: number
  /** Only tests whose full name contains this text. Default: all. */
  name?: string | undefined
}

const reporter = resolve(import.meta.dirname, 'test-reporter.ts')
/** Only the end of a longer output is kept, because it is the most useful part. */
const maxOutput = 256 * 1024

let nextReport = 0

const readResults = (path: string): TestResult[] => {
  try {
    const lines = readFileSync(path, 'utf8').split('\n')
    // The last line may be incomplete if the process was killed.
    return lines.slice(0, -1).map((line) => JSON.parse(line) as TestResult)
  } catch {
    return []
  }
}

export const runTestFile = async (file: string, settings: Settings): Promise<FileOutcome> => {
  const { scratch, env, timeoutSeconds, name } = settings
  const began = performance.now()
  const report = join(scratch, `report-${nextReport++}`)
  const child = spawn(
    process.execPath,
    [
      `--test-reporter=${reporter}`,
      `--test-reporter-destination=${report}`,
      // Less than the limit of the file, so that a hanging test is reported and the tests after it still run.
      `--test-timeout=${timeoutSeconds * 750}`,
      ...(name === undefined ? [] : [`--test-name-pattern=${RegExp.escape(name)}`]),
      file,
    ],
    // A separate process group, so that its child processes can be killed with it.
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
      // The process group is empty.
    }
  }
  let isLate = false
  const timer = setTimeout(() => {
    isLate = true
    killGroup()
  }, timeoutSeconds * 1000)
  const [code, signal] = (await once(child, 'exit')) as [number | null, string | null]
  clearTimeout(timer)
  // Kills processes that the tests left behind. A process that left the group may still hold the pipes.
  killGroup()
  child.stdout.destroy()
  child.stderr.destroy()
  const results = readResults(report)
  rmSync(report, { force: true })
  const hasFailure = results.some(({ outcome }) => outcome === 'failed')
  if (isLate) {
    results.push({ name: '(file)', outcome: 'failed', detail: `did not end within ${timeoutSeconds} s and was killed` })
  } else if (code !== 0 && !hasFailure) {
    results.push({ name: '(file)', outcome: 'failed', detail: `ended with ${signal ?? `exit code ${code}`}` })
  } else if (results.length === 0) {
    results.push({
      name: '(file)',
      outcome: 'failed',
      detail: name === undefined ? 'has no tests' : `has no test named "${name}"`,
    })
  }
  return { file, results, output, seconds: (performance.now() - began) / 1000, again: `./alcove test ${file}` }
}
