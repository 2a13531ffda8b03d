import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { BuildLog } from './build-log.ts'

suite('the log of a build', () => {
  test('a runner sends the log of a build in order and in few pieces, and its last part before the result', () => {
    const told: string[] = []
    {
      using log = new BuildLog((text) => told.push(text))
      for (const text of ['one\n', '', 'two\n']) log.add(text)
      assert.deepEqual(told, [])
    }
    assert.deepEqual(told, ['one\ntwo\n'])
  })

  test('a build log that is too long keeps its beginning and end, and says how much is missing between them', () => {
    const told: string[] = []
    {
      using log = new BuildLog((text) => told.push(text))
      for (let n = 0; n < 3000; n++) log.add('y'.repeat(1024))
      log.add('\nerror: no such file\n')
    }
    const text = told.join('')
    assert.ok(told.every((piece) => piece.length <= 65_536))
    assert.ok(text.length < 1100 * 1024)
    assert.match(text, /^y+\n\[log truncated: \d+ characters were left out here\]\ny+\nerror: no such file\n$/)
  })

  test('a build log within the limit is sent completely, even if its last part is sent at the build’s end', () => {
    const told: string[] = []
    {
      using log = new BuildLog((text) => told.push(text))
      for (let n = 0; n < 960; n++) log.add('y'.repeat(1024))
    }
    assert.equal(told.join(''), 'y'.repeat(960 * 1024))
  })
})
