import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type { FileOutcome } from './test-file.ts'
import { lineOf, redLine, redTests } from './test-report.ts'

const file = 'src/kit/budget.test.ts'

const detail = `AssertionError [ERR_ASSERTION]: Expected values to be strictly equal:

1 !== 2

    at TestContext.<anonymous> (file:///code/src/kit/budget.test.ts:14:12)`

const outcome = (...failed: string[]): FileOutcome => ({
  file,
  results: [
    { name: 'bound › gives back', outcome: 'passed' },
    ...failed.map((name) => ({ name, outcome: 'failed' as const, detail })),
  ],
  output: '',
  seconds: 0.25,
  processorSeconds: 0.125,
  again: `./alcove test ${file}`,
})

const verdicts = (last: FileOutcome, first?: FileOutcome) =>
  redTests(last, first).map(({ verdict, name }) => [verdict, name])

suite('the report of the test command', () => {
  test('the test report has a line for each test file, with its time and its numbers of tests', () => {
    assert.equal(lineOf(outcome()), `ok   ${file}  1 passed  (0.3 s, processor 0.1 s)`)
    assert.equal(lineOf(outcome('bound › refuses')), `FAIL ${file}  1 passed, 1 failed  (0.3 s, processor 0.1 s)`)
  })

  test('the test report has a line per failed test, with the reason and the command that runs it again', () => {
    const [red] = redTests(outcome('bound › refuses'))
    assert.ok(red)
    assert.equal(
      redLine(red),
      `./alcove test ${file} --name 'refuses'  # Expected values to be strictly equal: 1 !== 2`,
    )
  })

  test('the command that runs a test again quotes the test’s name as one shell word', () => {
    const [red] = redTests(outcome(`bound › doesn't "$HOME"`))
    assert.equal(red?.again, `./alcove test ${file} --name 'doesn'\\''t "$HOME"'`)
  })

  test('if a test file fails but none of its tests fails, the report’s command runs the whole file again', () => {
    const [red] = redTests(outcome('(file)'))
    assert.equal(red?.again, `./alcove test ${file}`)
  })

  test('the report calls a test FAILED AT FIRST if its second run passes, and otherwise FAILED TWICE', () => {
    assert.deepEqual(verdicts(outcome('a')), [['FAILED', 'a']])
    assert.deepEqual(verdicts(outcome('b', 'c'), outcome('a', 'b')), [
      ['FAILED AT FIRST', 'a'],
      ['FAILED TWICE', 'b'],
      ['FAILED', 'c'],
    ])
    assert.deepEqual(verdicts(outcome(), outcome('a')), [['FAILED AT FIRST', 'a']])
  })
})
