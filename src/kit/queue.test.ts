import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { FairQueue } from './queue.ts'

const settled = () => new Promise(setImmediate)

/** Runs work in `queue`. `order`: the owners, in the order in which their work began. */
const track = (queue: FairQueue) => {
  const order: string[] = []
  const turns: Disposable[] = []
  const take = async (owner: string, signal?: AbortSignal) => {
    const turn = await queue.take(owner, signal)
    order.push(owner)
    turns.push(turn)
  }
  const endOne = async () => {
    turns.shift()?.[Symbol.dispose]()
    await settled()
  }
  return { take, endOne, order }
}

suite('a queue that is fair to all owners of work', () => {
  test('a queue limits how much work runs in total and per owner, and runs the oldest allowed work first', async () => {
    const { take, endOne, order } = track(new FairQueue({ atOnce: 3, ofOne: 2 }))
    const turns = ['a', 'a', 'a', 'b', 'b', 'c', 'a'].map((owner) => take(owner))
    await settled()
    assert.equal(order.join(''), 'aab')
    for (let turn = 0; turn < 4; turn++) await endOne()
    await Promise.all(turns)
    assert.equal(order.join(''), 'aababca')
  })

  test('in a queue without a total limit, an owner’s work waits only for earlier work of the same owner', async () => {
    const queue = new FairQueue({ ofOne: 1 })
    const gate = Promise.withResolvers<void>()
    const did: string[] = []
    const first = queue.run(
      async () => {
        await gate.promise
        did.push('first')
        throw new Error('no')
      },
      { owner: 'a' },
    )
    const second = queue.run(async () => void did.push('second'), { owner: 'a' })
    await queue.run(async () => void did.push('other'), { owner: 'b' })
    gate.resolve()
    await assert.rejects(first, /no/)
    await second
    assert.deepEqual(did, ['other', 'first', 'second'])
    assert.equal(queue.has('a'), false)
  })

  test('a queue drops waiting work whose signal is aborted, and still runs all other waiting work', async () => {
    const { take, endOne, order } = track(new FairQueue({ atOnce: 1 }))
    await take('a')
    const call = new AbortController()
    const givenUp = assert.rejects(take('b', call.signal), { message: 'hung up' })
    const other = take('c')
    call.abort(new Error('hung up'))
    await givenUp
    await assert.rejects(take('b', call.signal), { message: 'hung up' })
    await endOne()
    await other
    assert.equal(order.join(''), 'ac')
  })

  test('a queue runs waiting work before new work that comes at the moment when running work ends', async () => {
    const queue = new FairQueue({ atOnce: 1 })
    const { take, order } = track(queue)
    const first = await queue.take('a')
    const waiting = take('b')
    first[Symbol.dispose]()
    const late = take('c')
    await waiting
    assert.equal(order.join(''), 'b')
    late.catch(() => {})
  })
})
