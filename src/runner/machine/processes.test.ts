import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { parseNamespacePids } from './processes.ts'

suite('processes of the host', () => {
  test('`parseNamespacePids` returns a process’s number in each namespace, the host’s number first', () => {
    assert.deepEqual(parseNamespacePids('Name:\tx\nNSpid:\t4711\t12\t1\nNSpgid:\t1\n'), [4711, 12, 1])
    assert.deepEqual(parseNamespacePids('Name:\tx\n'), [])
  })
})
