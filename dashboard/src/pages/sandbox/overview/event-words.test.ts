import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { actorText, reasonsOf, type SandboxEvent, titleOf, toneOf } from './event-words.ts'

const event = (parts: Partial<SandboxEvent>): SandboxEvent => ({
  id: 1,
  at: '2026-01-01T00:00:00.000Z',
  from: 'started',
  to: 'stopped',
  by: { kind: 'runner', id: 'local' },
  ...parts,
})

suite('the texts of a sandbox’s timeline', () => {
  test('`titleOf` uses the states before and after an event: `resuming` to `started` becomes “Resumed”', () => {
    assert.equal(titleOf(event({ from: 'creating', to: 'started' })), 'Started')
    assert.equal(titleOf(event({ from: 'resuming', to: 'started' })), 'Resumed')
    assert.equal(titleOf(event({ from: 'started', to: 'started' })), 'Created')
    assert.equal(titleOf(event({ from: 'resizing', to: 'stopped' })), 'Resize ended')
    assert.equal(titleOf(event({ from: null, to: 'creating' })), 'Creation began')
  })

  test('an event of the timeline with a cause but no new state has a warning colour and names the cause', () => {
    const mishap = event({ from: 'started', to: 'started', cause: { oomKilled: true } })
    assert.equal(titleOf(mishap), 'A process inside was killed')
    assert.equal(toneOf(mishap), 'warn')
    const trouble = event({ from: 'started', to: 'started', cause: { detail: 'No more processes.' } })
    assert.deepEqual([titleOf(trouble), toneOf(trouble)], ['Trouble inside', 'warn'])
  })

  test('`reasonsOf` returns each reason only once, even if the server sends it as reason, detail and cause', () => {
    assert.deepEqual(reasonsOf(event({ cause: { exitCode: 3 } })), ['Its first process ended with exit code 3.'])
    assert.deepEqual(
      reasonsOf(event({ reason: 'Its first process ended with exit code 3.', cause: { exitCode: 3 } })),
      ['Its first process ended with exit code 3.'],
    )
    assert.deepEqual(
      reasonsOf(event({ reason: 'python3 ran out of memory', cause: { oomKilled: true, signal: 'SIGKILL' } })),
      ['python3 ran out of memory'],
    )
    assert.deepEqual(reasonsOf(event({ reason: 'Lost.', cause: { detail: 'Lost.' } })), ['Lost.'])
    assert.deepEqual(reasonsOf(event({})), [])
  })

  test('`actorText` describes a user, a timer or a runner, and uses the id of a user without a known name', () => {
    const nameOf = (id: string) => (id === 'u1' ? 'Ada' : undefined)
    assert.equal(actorText({ kind: 'user', id: 'u1' }, nameOf), 'Ada')
    assert.equal(actorText({ kind: 'user', id: '592943ff-d676' }, nameOf), 'user 592943ff')
    assert.equal(actorText({ kind: 'timer', id: 'ttl' }, nameOf), 'its time to live')
    assert.equal(actorText({ kind: 'timer', id: 'new-one' }, nameOf), 'the timer new-one')
    assert.equal(actorText({ kind: 'runner', id: 'local' }, nameOf), 'runner local')
  })
})
