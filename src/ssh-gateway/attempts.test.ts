import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { Attempts } from './attempts.ts'

suite('wrong tokens', () => {
  test('20 wrong tokens in a minute bar a network until the minute is over, and no other network', () => {
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

  test('a flood of networks does not fill the memory: the one that failed longest ago is forgotten', () => {
    const attempts = new Attempts({ now: () => new Date(0) })
    for (let tries = 0; tries < 20; tries += 1) attempts.noteWrong('first')
    for (let network = 0; network < 10_000; network += 1) attempts.noteWrong(`network-${network}`)
    assert.equal(attempts.isBarred('first'), false)
  })
})
