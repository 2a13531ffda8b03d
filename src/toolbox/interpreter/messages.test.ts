import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { lastMessage, lineBytes, MessageReader } from './messages.ts'

const lines = (...texts: string[]) => Buffer.from(texts.map((text) => `${text}\n`).join(''))
const done = '{"id": null, "type": "done"}'

suite('the output of an interpreter’s worker', () => {
  test('`MessageReader` finds an interpreter’s messages, however the output is cut, and skips other lines', () => {
    const all = lines('', '{}', 'x'.repeat(30), '{"id"'.padEnd(30, 'x'), done, '{"id": 7, "type": "done"}', done)
    const expected = [
      { id: null, type: 'done' },
      { id: null, type: 'done' },
    ]
    for (const size of [1, 7, all.length]) {
      const reader = new MessageReader()
      const messages = []
      for (let at = 0; at < all.length; at += size) messages.push(...reader.push(all.subarray(at, at + size)))
      assert.deepEqual(messages, expected)
    }
    assert.deepEqual(lastMessage(Buffer.concat([all, lines('', '{}')])), { id: null, type: 'done' })
  })

  test('`MessageReader` skips an interpreter’s line that is too long or incomplete, and reads the next line', () => {
    const torn = new MessageReader()
    assert.deepEqual(torn.push(Buffer.from('{"id": 7, ')), [])
    torn.skip()
    assert.deepEqual(torn.push(lines(done, done)), [{ id: null, type: 'done' }])
    const endless = new MessageReader()
    assert.deepEqual(endless.push(Buffer.alloc(lineBytes + 1, 'x')), [])
    assert.deepEqual(endless.push(lines(done, done)), [{ id: null, type: 'done' }])
  })

  test('`MessageReader` does not parse a line of an interpreter’s output that cannot be a message', ({ mock }) => {
    const { mock: parsing } = mock.method(JSON, 'parse')
    const hostile = lines('', '{', '{}', '[{"id": null, "type": "done"}]', 'x'.repeat(100), '')
    assert.deepEqual(new MessageReader().push(hostile), [])
    assert.equal(lastMessage(hostile), undefined)
    assert.equal(parsing.callCount(), 0)
    const likely = lines(done, ...Array(40_000).fill('{"id"'.padEnd(30, 'x')))
    assert.equal(lastMessage(likely), undefined)
    assert.equal(parsing.callCount(), 64)
  })
})
