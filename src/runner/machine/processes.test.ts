import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { parseNamespacePids } from './processes.ts'

suite('processes of the host', () => {
  test('`parseNamespacePids` returns a process’s id in each of its pid namespaces, the host’s id first', () => {
    assert.deepEqual(parseNamespacePids('Name:\tx\nNSpid:\t4711\t12\t1\nNSpgid:\t1\n'), [4711, 12, 1])
    assert.deepEqual(parseNamespacePids('Name:\tx\n'), [])
  })
})
