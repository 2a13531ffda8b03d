import assert from 'node:assert/strict'
import { test } from 'node:test'
import { freeName, newTerminal, readTerminals } from './open-terminals.ts'

test('a new terminal has the first free name and an id that one segment of a path can hold', () => {
  const one = newTerminal([])
  const two = newTerminal([one])
  assert.deepEqual([one.name, two.name, freeName([two])], ['Terminal 1', 'Terminal 2', 'Terminal 1'])
  assert.match(one.id, /^dashboard-[0-9a-f]{16}$/)
  assert.notEqual(one.id, two.id)
})

test('stored terminals come back, at most twelve', () => {
  const stored = Array.from({ length: 20 }, (_, i) => ({ id: `a${i}`, name: 'x' }))
  const read = readTerminals(JSON.stringify(stored))
  assert.equal(read.length, 12)
  assert.deepEqual(read[0], { id: 'a0', name: 'x', isNew: false })
})

test('anything else that is stored is no terminal', () => {
  for (const stored of [null, '', '{', '3', '{}', '[null]', '[{"id":3,"name":"x"}]', '[{"id":"a/b","name":"x"}]'])
    assert.deepEqual(readTerminals(stored), [])
})
