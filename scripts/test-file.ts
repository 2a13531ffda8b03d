// Runs one test file in a process of its own, with a bound, and answers what came of it.
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
  /** The command that does it again. */
  again: string
}

type Settings = {
  scratch: string
  env: NodeJS.ProcessEnv
  timeoutSeconds: number
  /** Only the tests whose full name holds this text. Default: all. */
  name?: string | undefined
}

const reporter = resolve(import.meta.dirname, 'test-reporter.ts')
/** A file may print more than this; only the end is kept, which says most. */
const maxOutput = 256 * 1024

let nextReport = 0

const readResults = (path: string): TestResult[] => {
  try {
    const lines = readFileSync(path, 'utf8').split('\n')
    // The last line may be cut if the process was killed.
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
      // A test that hangs is named, as there is time left for its hooks and those after it.
      `--test-timeout=${timeoutSeconds * 750}`,
      ...(name === undefined ? [] : [`--test-name-pattern=${RegExp.escape(name)}`]),
      file,
    ],
    // A group of its own, so that what it started can be ended with it.
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
      // Nobody is left in it.
    }
  }
  let isLate = false
  const timer = setTimeout(() => {
    isLate = true
    killGroup()
  }, timeoutSeconds * 1000)
  const [code, signal] = (await once(child, 'exit')) as [number | null, string | null]
  clearTimeout(timer)
  // What a test left behind ends with its file. Whoever left the group may still hold the pipes.
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
