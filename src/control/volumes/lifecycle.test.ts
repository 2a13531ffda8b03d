import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { movesOn, namedStates, volumeEvents, volumeMoves, volumeStates } from './lifecycle.ts'

suite('the states of a volume', () => {
  test('each state of a volume can be reached, and each event can change the state of a volume', () => {
    assert.deepEqual(new Set(volumeMoves.map(([, , to]) => to)), new Set(volumeStates))
    assert.deepEqual(new Set(volumeMoves.map(([on]) => on)), new Set(volumeEvents))
  })

  test('from each state of a volume, an event leads to at most one next state', () => {
    const pairs = volumeMoves.map(([on, from]) => `${on} ${from}`)
    assert.deepEqual(pairs, [...new Set(pairs)])
  })

  test('a deleted volume does not change any more', () => {
    assert.deepEqual(
      volumeMoves.filter(([, from]) => (from as string | null) === 'deleted'),
      [],
    )
  })

  test('a volume whose deletion was requested becomes `deleted`, even if its runner is then removed', () => {
    const ends = [...movesOn('remove'), ...movesOn('lose-runner')].filter(({ from }) => from === 'pending_delete')
    assert.deepEqual(new Set(ends.map(({ to }) => to)), new Set(['deleted']))
  })

  test('a volume keeps its name until its deletion is requested', () => {
    assert.deepEqual(namedStates, ['ready', 'error'])
  })
})
