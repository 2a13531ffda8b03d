import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { oneAtATime } from './one-at-a-time.ts'

suite('`oneAtATime` runs only one piece of work per key at a time', () => {
  test('`oneAtATime` runs work for one key in order, even after a failure; work for other keys need not wait', async () => {
    const line = oneAtATime()
    const gate = Promise.withResolvers<void>()
    const did: string[] = []
    const first = line('a', async () => {
      await gate.promise
      did.push('first')
      throw new Error('no')
    })
    const second = line('a', async () => void did.push('second'))
    await line('b', async () => void did.push('other'))
    gate.resolve()
    await assert.rejects(first, /no/)
    await second
    assert.deepEqual(did, ['other', 'first', 'second'])
  })

  test('`oneAtATime` refuses work for a key if 32 callers already have work for that key', async () => {
    const line = oneAtATime()
    const gate = Promise.withResolvers<void>()
    const waiting = Array.from({ length: 32 }, () => line('a', () => gate.promise))
    await assert.rejects(
      line('a', () => gate.promise),
      /Too much is waiting/,
    )
    gate.resolve()
    await Promise.all(waiting)
    await line('a', async () => {})
  })
})
