import assert from 'node:assert/strict'
import { test } from 'node:test'
import { freeName, newTerminal, readTerminals } from './open-terminals.ts'

test('a new terminal gets the first free name, and an id that needs no encoding in a URL path', () => {
  const one = newTerminal([])
  const two = newTerminal([one])
  assert.deepEqual([one.name, two.name, freeName([two])], ['Terminal 1', 'Terminal 2', 'Terminal 1'])
  assert.match(one.id, /^dashboard-[0-9a-f]{16}$/)
  assert.notEqual(one.id, two.id)
})

test('the dashboard restores at most twelve of the stored terminals of a sandbox', () => {
  const stored = Array.from({ length: 20 }, (_, i) => ({ id: `a${i}`, name: 'x' }))
  const read = readTerminals(JSON.stringify(stored))
  assert.equal(read.length, 12)
  assert.deepEqual(read[0], { id: 'a0', name: 'x', isNew: false })
})

test('the dashboard ignores stored values that do not describe a terminal (`readTerminals`)', () => {
  for (const stored of [null, '', '{', '3', '{}', '[null]', '[{"id":3,"name":"x"}]', '[{"id":"a/b","name":"x"}]'])
    assert.deepEqual(readTerminals(stored), [])
})
