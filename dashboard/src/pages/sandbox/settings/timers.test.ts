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
  test('the form of timers accepts whole numbers, and a negative number only for the auto-delete timer', () => {
    assert.equal(readTimer('autoStopInterval', ' 30 '), 30)
    assert.equal(readTimer('autoDeleteInterval', '-1'), -1)
    for (const wrong of ['', '-1', '1.5', '1e3', 'never']) {
      assert.equal(readTimer('autoStopInterval', wrong), undefined, wrong)
    }
    assert.equal(readTimer('autoDeleteInterval', '-2'), undefined)
  })

  test('the form of timers sends only the timers that were changed', () => {
    assert.deepEqual(timerCalls(timers(), timers()), [])
    assert.deepEqual(timerCalls(timers(), timers({ autoArchiveInterval: '60' })), [
      { name: 'autoArchiveInterval', minutes: 60 },
    ])
  })

  test('the form of timers switches autostop off before autopause on, and autopause off before autostop on', () => {
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
