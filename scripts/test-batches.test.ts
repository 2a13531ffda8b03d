import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { batchesOf } from './test-batches.ts'

const needDatabases = ['regions', 'members', 'roles', 'meters'].map((noun) => `src/control/${noun}/routes.test.ts`)
const pure = ['src/kit/log.test.ts', 'src/kit/rate.test.ts']
const startsPrograms = 'scripts/test-file.test.ts'
/** A test file that needs a database, and that changes the clock of its whole process. */
const mocks = 'src/control/rate-limits/limits.test.ts'

suite('which test files share a process', () => {
  test('test files that need only a database share a process; a file that starts programs has its own', () => {
    assert.deepEqual(batchesOf([...needDatabases, startsPrograms, ...pure], 1), [
      [...needDatabases, ...pure],
      [startsPrograms],
    ])
  })

  test('a test file in `test/` does not share its process, because such a file takes minutes', () => {
    const slow = ['test/hosts/join.test.ts', 'test/hosts/ring.test.ts']
    assert.deepEqual(batchesOf([...slow, ...needDatabases], 1), [...slow.map((file) => [file]), needDatabases])
  })

  test('a test file that replaces modules or timers does not share its process', () => {
    assert.deepEqual(batchesOf([mocks, ...needDatabases], 1), [[mocks], needDatabases])
  })

  test('test files are split into enough batches that each parallel lane of a test run has a batch', () => {
    const [first, second, third, fourth] = needDatabases
    assert.deepEqual(batchesOf(needDatabases, 3), [
      [first, second],
      [third, fourth],
    ])
    assert.deepEqual(
      batchesOf(needDatabases, 4),
      needDatabases.map((file) => [file]),
    )
  })
})
