import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { Batches } from './batches.ts'

suite('running items of work in batches', () => {
  /** Returns a `Batches` object. Each batch of it ends only when the test calls `finish`. */
  const held = (most: number) => {
    const begun: string[][] = []
    const finishing: (() => void)[] = []
    const batches = new Batches<string>(most, async (items) => {
      begun.push([...items])
      await new Promise<void>((resolve) => finishing.push(resolve))
      return Promise.allSettled(items.map((item) => (item === 'bad' ? Promise.reject(new Error('bad')) : undefined)))
    })
    const finish = async () => {
      finishing.shift()?.()
      await new Promise((resolve) => setImmediate(resolve))
    }
    return { begun, batches, finish }
  }

  test('the first item of a queue runs immediately; items added meanwhile run in batches of limited size', async () => {
    const { begun, batches, finish } = held(2)
    const all = ['a', 'b', 'c', 'd'].map((item) => batches.run(item))
    assert.deepEqual(begun, [['a']])
    for (let round = 0; round < 3; round++) await finish()
    await Promise.all(all)
    assert.deepEqual(begun, [['a'], ['b', 'c'], ['d']])
    const late = batches.run('e')
    await finish()
    await late
    assert.deepEqual(begun.at(-1), ['e'])
  })

  test('an item that fails does not make other items of its batch fail', async () => {
    const { batches, finish } = held(9)
    const all = Promise.allSettled(['a', 'bad', 'c'].map((item) => batches.run(item)))
    for (let round = 0; round < 2; round++) await finish()
    assert.deepEqual(
      (await all).map(({ status }) => status),
      ['fulfilled', 'rejected', 'fulfilled'],
    )
  })

  test('if the work function of a batch throws, all items of that batch fail, and the next batch runs', async () => {
    let times = 0
    const batches = new Batches<string>(1, async (items) => {
      if (times++ === 0) throw new Error('all of it')
      return Promise.allSettled(items)
    })
    const [first, second] = await Promise.allSettled([batches.run('a'), batches.run('b')])
    assert.deepEqual([first?.status, second?.status], ['rejected', 'fulfilled'])
  })
})
