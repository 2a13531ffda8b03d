import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { readTimer, type Timers, timerCalls } from './timers.ts'

const timers = (parts: Partial<Timers> = {}): Timers => ({
  autoStopInterval: '15',
  autoPauseInterval: '0',
  autoArchiveInterval: '10080',
  autoDeleteInterval: '-1',
  ...parts,
})

suite('the form of the timers', () => {
  test('`readTimer` takes whole numbers, and a negative one only for the deletion', () => {
    assert.equal(readTimer('autoStopInterval', ' 30 '), 30)
    assert.equal(readTimer('autoDeleteInterval', '-1'), -1)
    for (const wrong of ['', '-1', '1.5', '1e3', 'never']) {
      assert.equal(readTimer('autoStopInterval', wrong), undefined, wrong)
    }
    assert.equal(readTimer('autoDeleteInterval', '-2'), undefined)
  })

  test('`timerCalls` names only the timers that differ', () => {
    assert.deepEqual(timerCalls(timers(), timers()), [])
    assert.deepEqual(timerCalls(timers(), timers({ autoArchiveInterval: '60' })), [
      { name: 'autoArchiveInterval', minutes: 60 },
    ])
  })

  test('`timerCalls` switches autostop off before autopause on, and the other way round', () => {
    const names = (from: Timers, to: Timers) => timerCalls(from, to).map(({ name }) => name)
    const pausing = timers({ autoStopInterval: '0', autoPauseInterval: '10' })
    assert.deepEqual(names(timers(), pausing), ['autoStopInterval', 'autoPauseInterval'])
    assert.deepEqual(names(pausing, timers()), ['autoPauseInterval', 'autoStopInterval'])
    const deleted = timers({ autoDeleteInterval: '0' })
    assert.deepEqual(names(deleted, timers({ autoStopInterval: '0', autoPauseInterval: '10' })), [
      'autoStopInterval',
      'autoDeleteInterval',
      'autoPauseInterval',
    ])
    assert.deepEqual(names(pausing, deleted), ['autoPauseInterval', 'autoStopInterval', 'autoDeleteInterval'])
  })
})
