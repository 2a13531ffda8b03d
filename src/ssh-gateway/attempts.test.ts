import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { Attempts } from './attempts.ts'

suite('wrong SSH tokens', () => {
  test('a network that sends 20 wrong SSH tokens in a minute may not connect until the minute is over', () => {
    let now = 1000
    const attempts = new Attempts({ now: () => new Date(now) })
    for (let tries = 0; tries < 19; tries += 1) attempts.noteWrong('a')
    assert.equal(attempts.isBarred('a'), false)
    attempts.noteWrong('a')
    assert.deepEqual([attempts.isBarred('a'), attempts.isBarred('b')], [true, false])
    now += 60_000
    assert.equal(attempts.isBarred('a'), false)
    attempts.noteWrong('a')
    assert.equal(attempts.isBarred('a'), false)
  })

  test('the SSH gateway remembers only the last 10,000 networks that have sent wrong SSH tokens', () => {
    const attempts = new Attempts({ now: () => new Date(0) })
    for (let tries = 0; tries < 20; tries += 1) attempts.noteWrong('first')
    for (let network = 0; network < 10_000; network += 1) attempts.noteWrong(`network-${network}`)
    assert.equal(attempts.isBarred('first'), false)
  })
})
