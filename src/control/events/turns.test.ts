import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { createTurns } from './turns.ts'

/** Returns work that runs until the test calls `letGo`. */
const held = () => {
  const { promise, resolve } = Promise.withResolvers<void>()
  return { work: () => promise, letGo: () => resolve() }
}

const fill = (take: ReturnType<typeof createTurns>, organizationId: string, work: () => Promise<void>) => {
  let taken = 0
  while (take(organizationId, work)) taken += 1
  return taken
}

suite('the queue of events that are to be sent to Socket.IO clients', () => {
  test('one organization’s events fill at most a tenth of the event queue, so other organizations have room', async () => {
    const take = createTurns(1000)
    const { work, letGo } = held()
    assert.equal(fill(take, 'loud', work), 100)
    assert.equal(take('quiet', work), true)
    letGo()
  })

  test('events of 20 busy organizations leave room in the queue for events of another organization', async () => {
    const take = createTurns(1000)
    const { work, letGo } = held()
    let taken = 0
    for (let n = 0; n < 20; n += 1) taken += fill(take, `loud ${n}`, work)
    assert.ok(taken < 1000, `${taken} wait`)
    assert.equal(take('quiet', work), true)
    letGo()
  })

  test('a slow event delays only its organization’s later events; finished or failed events leave the queue', async () => {
    const take = createTurns(10)
    const { work, letGo } = held()
    assert.equal(take('slow', work), true)
    assert.equal(take('slow', work), false)
    const told = Promise.withResolvers<void>()
    assert.equal(
      take('other', async () => told.resolve()),
      true,
    )
    await told.promise
    letGo()
    await new Promise(setImmediate)
    assert.equal(
      take('slow', async () => Promise.reject(new Error('broken'))),
      true,
    )
    await new Promise(setImmediate)
    assert.equal(take('slow', work), true)
  })
})
