import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { BuildLog } from './build-log.ts'

suite('what is said of a build', () => {
  test('is told in order and in few pieces, the last before it ends', () => {
    const told: string[] = []
    {
      using log = new BuildLog((text) => told.push(text))
      for (const text of ['one\n', '', 'two\n']) log.add(text)
      assert.deepEqual(told, [])
    }
    assert.deepEqual(told, ['one\ntwo\n'])
  })

  test('has a bound, and says so', () => {
    const told: string[] = []
    {
      using log = new BuildLog((text) => told.push(text))
      for (let n = 0; n < 3000; n++) log.add('y'.repeat(1024))
    }
    const text = told.join('')
    assert.ok(told.every((piece) => piece.length <= 65_536) && text.length < 1024 * 1024)
    assert.equal(text.replace(/^y+/, ''), '\n[The rest is left out.]\n')
  })
})
