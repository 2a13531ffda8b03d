// Runs in the process of each test file. When a test ends, this module writes a line of JSON, and scripts/test.ts counts these
// lines.
import type { TestEvent } from 'node:test/reporters'

export type TestResult = {
  /** Full name of the test: the names of its suites, from the outermost to the innermost, and its own name. */
  name: string
  outcome: 'passed' | 'failed' | 'skipped'
  /** Why the test was skipped or why it failed. Absent for a test that passed. */
  detail?: string
}

/** The result of a test in the form in which this file writes it. */
export type ReportedResult = TestResult & {
  /** Absolute path of the test's file. For a test in suites: the file of the outermost suite. */
  file: string
  seconds: number
}

type Finished = {
  name: string
  nesting: number
  file?: string
  skip?: string | boolean
  todo?: string | boolean
  details: { duration_ms?: number; type?: string; error?: Error & { failureType?: string; cause?: unknown } }
}

const failureText = (error: (Error & { cause?: unknown }) | undefined): string => {
  const cause = error?.cause ?? error
  return cause instanceof Error ? (cause.stack ?? cause.message) : String(cause)
}

const resultOf = (type: string, data: Finished, name: string): TestResult | undefined => {
  const { details, skip, todo } = data
  const isOnlyGroup = details.type === 'suite' || details.error?.failureType === 'subtestsFailed'
  if (type === 'test:fail' && todo === undefined) {
    // A suite whose test failed is not counted, because the failed test itself is counted. A suite is counted only if a hook of it
    // failed.
    return details.error?.failureType === 'subtestsFailed'
      ? undefined
      : { name, outcome: 'failed', detail: failureText(details.error) }
  }
  if (skip !== undefined && skip !== false) {
    return { name, outcome: 'skipped', detail: skip === true || skip === '' ? 'no reason given' : skip }
  }
  if (todo !== undefined && todo !== false) return { name, outcome: 'skipped', detail: 'to do' }
  return isOnlyGroup ? undefined : { name, outcome: 'passed' }
}

export default async function* reportLines(source: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  const path: string[] = []
  let file = ''
  for await (const event of source as AsyncIterable<{ type: string; data: Finished }>) {
    const { type, data } = event
    if (type === 'test:start') {
      path[data.nesting] = data.name
      if (data.nesting === 0) file = data.file ?? ''
    }
    if (type !== 'test:pass' && type !== 'test:fail') continue
    const result = resultOf(type, data, [...path.slice(0, data.nesting), data.name].join(' › '))
    const seconds = (data.details.duration_ms ?? 0) / 1000
    if (result) yield `${JSON.stringify({ ...result, file, seconds } satisfies ReportedResult)}\n`
  }
}
