import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { goOnInTurn } from './yield.ts'

suite('waiting after expensive work (`goOnInTurn`)', () => {
  test('after expensive work, each caller waits as long as its work took, one caller after another', (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const gone: string[] = []
    goOnInTurn(5, () => gone.push('one'))
    goOnInTurn(7, () => gone.push('two'))
    t.mock.timers.tick(4)
    assert.equal(gone.join(), '')
    t.mock.timers.tick(1)
    assert.equal(gone.join(), 'one')
    goOnInTurn(5, () => gone.push('one again'))
    t.mock.timers.tick(7)
    assert.equal(gone.join(), 'one,two')
    t.mock.timers.tick(5)
    assert.equal(gone.join(), 'one,two,one again')
  })
})
