import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { batchesOf } from './test-batches.ts'

const needDatabases = ['regions', 'members', 'roles', 'meters'].map((noun) => `src/control/${noun}/routes.test.ts`)
const pure = ['src/kit/log.test.ts', 'src/kit/rate.test.ts']
const startsPrograms = 'scripts/test-file.test.ts'
/** This test file has a database and replaces the clock of the whole process. */
const mocks = 'src/control/rate-limits/limits.test.ts'

suite('the files of one process', () => {
  test('test files in one process need a database or are pure code; files that start programs are alone', () => {
    assert.deepEqual(batchesOf([...needDatabases, startsPrograms, ...pure], 1), [
      [...needDatabases, ...pure],
      [startsPrograms],
    ])
  })

  test('test files that share a process do not replace anything in that process', () => {
    assert.deepEqual(batchesOf([mocks, ...needDatabases], 1), [[mocks], needDatabases])
  })

  test('batches are small enough that every lane has files to run', () => {
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
