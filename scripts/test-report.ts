// The report of the test command: a line for each file, and for each failed test the command that runs it again.
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
 * The word before a failed test. `FAILED TWICE`: the test failed in both runs of its file.
 * `FAILED AT FIRST`: the test passed in the second run, when its file ran alone. So the test depends on timing.
 * `FAILED`: the test failed in the only run, or only in the second.
 */
export type Verdict = 'FAILED' | 'FAILED TWICE' | 'FAILED AT FIRST'

export type Red = { verdict: Verdict; file: string; name: string; detail: string; again: string }

const failuresOf = ({ results }: FileOutcome) => results.filter(({ outcome }) => outcome === 'failed')

/** Returns the failed tests of a file. `last`: its last run. `first`: its first run, if it has run twice. */
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

/**
 * Returns the command that runs a test again. If the name is in parentheses, such as `(file)`, the command runs the whole
 * file.
 */
const commandFor = ({ file, again }: FileOutcome, name: string): string => {
  const title = name.split(' › ').at(-1) as string
  return file.endsWith('.test.ts') && !name.startsWith('(') ? `${again} --name ${quoted(title)}` : again
}

const reasonLength = 160

/** Returns why a test failed, as one line: the error without its stack trace, and without the name of its class. */
const reasonOf = (detail: string): string => {
  const lines = detail.split('\n').map((line) => line.trim())
  const stack = lines.findIndex((line) => line.startsWith('at '))
  const said = (stack < 1 ? lines : lines.slice(0, stack)).filter(Boolean).join(' ')
  const reason = said.replace(/^AssertionError \[ERR_ASSERTION\]: /, '')
  return reason.length > reasonLength ? `${reason.slice(0, reasonLength)} …` : reason
}

/** Returns the line for a failed test: the command that runs it again, and then the reason as a comment of the shell. */
export const redLine = ({ again, detail }: Red): string => `${again}  # ${reasonOf(detail)}`
