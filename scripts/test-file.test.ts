import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { after, suite, test } from 'node:test'
import { identityOf, waitUntilGone } from '#src/kit/process-identity.ts'
import { runTestFile, runTestFiles } from './test-file.ts'

suite('running one test file', () => {
  const scratch = mkdtempSync(join(tmpdir(), 'alcove-test-file-'))
  after(() => rmSync(scratch, { recursive: true, force: true }))

  // A time limit includes the start of Node, which a busy machine may delay by more than a second.
  const run = async (code: string, timeoutSeconds = 60, name?: string) => {
    const file = join(scratch, 'sample.test.mjs')
    writeFileSync(file, `import { after, suite, test } from 'node:test'\n${code}`)
    // With NODE_TEST_CONTEXT, the inner test runner would report its results to the outer one.
    const { NODE_TEST_CONTEXT: _, ...env } = process.env
    return runTestFile(file, { scratch, env, timeoutSeconds, name })
  }

  test('a test run counts tests but not suites; the full name of a test contains the names of its suites', async () => {
    const { results, output } = await run(
      [
        `suite('suite around a suite', () => {`,
        `suite('suite in a suite', () => { test('a test that passes', () => { console.log('said aloud') }) })`,
        `test('a test that fails', () => { throw new Error('because') })`,
        `test('a skipped test that needs root', { skip: 'needs root' }, () => {})`,
        '})',
      ].join('\n'),
    )
    assert.deepEqual(
      results.map(({ name, outcome }) => [name, outcome]),
      [
        ['suite around a suite › suite in a suite › a test that passes', 'passed'],
        ['suite around a suite › a test that fails', 'failed'],
        ['suite around a suite › a skipped test that needs root', 'skipped'],
      ],
    )
    assert.match(results[1]?.detail ?? '', /because/)
    assert.equal(results[2]?.detail, 'needs root')
    assert.match(output, /said aloud/)
  })

  test('a test file that never ends is killed and counts as failed, even if its tests passed', async () => {
    const { results } = await run(`test('a test that passes', () => {}); setInterval(() => {}, 1000)`, 4)
    assert.deepEqual(
      results.map(({ outcome }) => outcome),
      ['passed', 'failed'],
    )
    assert.match(results[1]?.detail ?? '', /did not end within 4 s/)
  })

  test('a test that never ends is reported by its name, and the tests after it still run', async () => {
    const { results } = await run(
      `suite('a suite', () => { test('a test that never ends', () => new Promise(() => setInterval(() => {}, 1000))); test('a test that passes', () => {}) })`,
      8,
    )
    assert.deepEqual(
      results.map(({ name, outcome }) => [name, outcome]),
      [
        ['a suite › a test that never ends', 'failed'],
        ['a suite › a test that passes', 'passed'],
        ['(file)', 'failed'],
      ],
    )
  })

  test('a test file gets more memory for new objects than Node’s default, unless it measures its own memory', async () => {
    const print = 'console.log(process.execArgv.join(" "))'
    const more = /--max-semi-space-size=/
    assert.match((await run(`test('a test that prints', () => ${print})`)).output, more)
    const measuring = `test('a test that prints', () => { process.memoryUsage(); ${print} })`
    assert.doesNotMatch((await run(measuring)).output, more)
  })

  test('a test run counts a test file that throws while it is loaded as failed', async () => {
    const { results, output } = await run(`throw new Error('at load')`)
    assert.deepEqual(
      results.map(({ outcome }) => outcome),
      ['failed'],
    )
    assert.match(`${output}${results[0]?.detail}`, /at load/)
  })

  test('a test file without tests fails', async () => {
    const { results } = await run('')
    assert.deepEqual(results, [{ name: '(file)', outcome: 'failed', detail: 'has no tests' }])
  })

  test('with --name, only tests whose name contains the text run; a file without such a test fails', async () => {
    const code = `suite('a suite', () => { test('a.b (c)', () => {}); test('axb c', () => { throw new Error('ran') }) })`
    const { results } = await run(code, 60, 'a.b (c)')
    assert.deepEqual(results, [{ name: 'a suite › a.b (c)', outcome: 'passed' }])
    const none = await run(code, 60, 'a.b (d)')
    assert.deepEqual(none.results, [{ name: '(file)', outcome: 'failed', detail: 'has no test named "a.b (d)"' }])
  })

  test('if a hook fails, its file fails even if all tests of the file passed', async () => {
    const { results } = await run(
      `suite('a suite', () => { test('a test that passes', () => {}); after(() => { throw new Error('in hook') }) })`,
    )
    assert.ok(results.some(({ outcome, detail }) => outcome === 'failed' && /in hook/.test(detail ?? '')))
  })

  test('if a test leaves a process running, that process is killed and the test file ends', async () => {
    const { results, output } = await run(
      [
        `import { spawn } from 'node:child_process'`,
        `test('a test that passes', () => {`,
        `const child = spawn('sleep', ['3600'], { stdio: ['ignore', 'inherit', 'inherit'] })`,
        'child.unref()',
        `console.log('left behind:', child.pid)`,
        '})',
      ].join('\n'),
    )
    const pid = Number(/left behind: (\d+)/.exec(output)?.[1])
    assert.equal(await waitUntilGone(identityOf(pid), 10_000), true)
    assert.deepEqual(
      results.map(({ outcome }) => outcome),
      ['passed'],
    )
  })
})

suite('running several test files in one process', () => {
  const scratch = mkdtempSync(join(tmpdir(), 'alcove-test-files-'))
  after(() => rmSync(scratch, { recursive: true, force: true }))

  const { NODE_TEST_CONTEXT: _, ...env } = process.env

  const run = async (codes: Record<string, string>, timeoutSeconds = 60) => {
    const files = Object.entries(codes).map(([name, code]) => {
      const file = join(scratch, `${name}.test.mjs`)
      writeFileSync(file, `import { after, suite, test } from 'node:test'\n${code}`)
      return file
    })
    const outcomes = await runTestFiles(files, { scratch, env, timeoutSeconds })
    return outcomes.map(({ file, results }) => [
      basename(file, '.test.mjs'),
      results.map(({ name, outcome }) => `${name} ${outcome}`),
    ])
  }

  const passes = `suite('a suite', () => test('a test that passes', () => {}))`

  test('if several test files run in one process, the report has separate results for each file', async () => {
    const outcomes = await run({
      first: `globalThis.wasHere = true; ${passes}`,
      second: `test('a test that sees the first file', () => { if (!globalThis.wasHere) throw new Error() })`,
      third: `test('a test that fails', () => { throw new Error() }); ${passes}`,
    })
    assert.deepEqual(outcomes, [
      ['first', ['a suite › a test that passes passed']],
      ['second', ['a test that sees the first file passed']],
      ['third', ['a test that fails failed', 'a suite › a test that passes passed']],
    ])
  })

  test('if a test file ends the process that it shares, only that file fails', async () => {
    const outcomes = await run({
      first: passes,
      second: `test('a test that ends the process', () => process.exit(3))`,
      third: passes,
    })
    assert.deepEqual(outcomes, [
      ['first', ['a suite › a test that passes passed']],
      ['second', ['(file) failed']],
      ['third', ['a suite › a test that passes passed']],
    ])
  })

  test('if a test file that shares its process never ends, only that file fails', async () => {
    const outcomes = await run({ first: passes, second: `${passes}; setInterval(() => {}, 1000)` }, 3)
    assert.deepEqual(outcomes, [
      ['first', ['a suite › a test that passes passed']],
      ['second', ['a suite › a test that passes passed', '(file) failed']],
    ])
  })

  test('if several test files share a process, a file that throws when loaded or has no tests fails alone', async () => {
    const outcomes = await run({ first: passes, second: `throw new Error('at load')`, third: '' })
    assert.deepEqual(
      outcomes.map(([file, results]) => [file, (results as string[]).map((result) => result.split(' ').at(-1))]),
      [
        ['first', ['passed']],
        ['second', ['failed']],
        ['third', ['failed']],
      ],
    )
  })
})
