// The report of the test command: a line per file, and a line per failed test with the command that runs it again.
import type { FileOutcome } from './test-file.ts'
import type { TestResult } from './test-reporter.ts'

export const countOf = (results: readonly TestResult[], outcome: TestResult['outcome']): number =>
  results.filter((result) => result.outcome === outcome).length

export const hasFailed = ({ results }: FileOutcome): boolean => countOf(results, 'failed') > 0

export const lineOf = ({ file, results, seconds, processorSeconds }: FileOutcome): string => {
  const counts = (['passed', 'failed', 'skipped'] as const)
    .map((kind) => [countOf(results, kind), kind] as const)
    .filter(([count]) => count > 0)
    .map(([count, kind]) => `${count} ${kind}`)
  const processor = processorSeconds === undefined ? '' : `, processor ${processorSeconds.toFixed(1)} s`
  const verdict = countOf(results, 'failed') > 0 ? 'FAIL' : 'ok  '
  return `${verdict} ${file}  ${counts.join(', ')}  (${seconds.toFixed(1)} s${processor})`
}

/**
 * Heading of a failed test. `FAILED AT FIRST`: the test passed in a second run alone, so it has a race. `FAILED TWICE`:
 * it failed again. `FAILED`: it ran only once.
 */
export type Verdict = 'FAILED' | 'FAILED TWICE' | 'FAILED AT FIRST'

export type Red = { verdict: Verdict; file: string; name: string; detail: string; again: string }

const failuresOf = ({ results }: FileOutcome) => results.filter(({ outcome }) => outcome === 'failed')

/** The failed tests of a file, in its last run and in its first run if there were two. */
export const redTests = (last: FileOutcome, first?: FileOutcome): Red[] => {
  const before = first === undefined ? [] : failuresOf(first)
  const now = failuresOf(last)
  const has = (failures: readonly TestResult[], name: string) => failures.some((failure) => failure.name === name)
  const red = (verdict: Verdict, { name, detail = '' }: TestResult): Red => {
    return { verdict, file: last.file, name, detail, again: commandFor(last, name) }
  }
  return [
    ...before.filter(({ name }) => !has(now, name)).map((failure) => red('FAILED AT FIRST', failure)),
    ...now.map((failure) => red(has(before, failure.name) ? 'FAILED TWICE' : 'FAILED', failure)),
  ]
}

const quoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`

/** The command that runs a test again. A name in parentheses, such as `(file)`, stands for the whole file. */
const commandFor = ({ file, again }: FileOutcome, name: string): string => {
  const title = name.split(' › ').at(-1) as string
  return file.endsWith('.test.ts') && !name.startsWith('(') ? `${again} --name ${quoted(title)}` : again
}

const reasonLength = 160

/** Returns the reason of a failure as one line: the lines before the stack, without the name of the error's class. */
const reasonOf = (detail: string): string => {
  const lines = detail.split('\n').map((line) => line.trim())
  const stack = lines.findIndex((line) => line.startsWith('at '))
  const said = (stack < 1 ? lines : lines.slice(0, stack)).filter(Boolean).join(' ')
  const reason = said.replace(/^AssertionError \[ERR_ASSERTION\]: /, '')
  return reason.length > reasonLength ? `${reason.slice(0, reasonLength)} …` : reason
}

/** The line about a failed test: the command that runs the test again, and then the reason as a shell comment. */
export const redLine = ({ again, detail }: Red): string => `${again}  # ${reasonOf(detail)}`
