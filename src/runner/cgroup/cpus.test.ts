import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { CpuSpread, parseCpuList, writeCpuList } from './cpus.ts'

suite('the processors that sandboxes are assigned', () => {
  test('lists of processors are parsed and written in the kernel’s format', () => {
    for (const list of ['0', '0-3', '0-3,8', '1,3,5-6', '']) assert.equal(writeCpuList(parseCpuList(`${list}\n`)), list)
    assert.equal(writeCpuList([3, 1, 2, 9]), '1-3,9')
  })

  test('a sandbox with `cpu` N gets N processors, rounded up: at least 1, at most all of the host', () => {
    const spread = new CpuSpread([0, 1, 2, 3])
    assert.equal(spread.take('a', 0.1).length, 1)
    assert.equal(spread.take('b', 1.5).length, 2)
    assert.equal(spread.take('c', 64).length, 4)
  })

  test('a new sandbox gets the processors that fewest sandboxes have; `release` frees a sandbox’s processors', () => {
    const spread = new CpuSpread([0, 1, 2])
    assert.deepEqual(spread.take('a', 1), [0])
    assert.deepEqual(spread.take('b', 1), [1])
    assert.deepEqual(spread.take('c', 0.5), [2])
    assert.deepEqual(spread.take('d', 1), [2])
    spread.release('a')
    spread.release('a')
    assert.deepEqual(spread.take('e', 1), [0])
  })

  test('a sandbox keeps its processors when it gets more CPUs, and some of them when it gets fewer CPUs', () => {
    const spread = new CpuSpread([0, 1, 2, 3])
    spread.take('other', 1)
    assert.deepEqual(spread.take('a', 1), [1])
    assert.deepEqual(spread.take('a', 3), [1, 2, 3])
    assert.ok([1, 2, 3].includes(spread.take('a', 1)[0]!))
    assert.deepEqual(spread.take('b', 4), [0, 1, 2, 3])
  })

  test('processors that an earlier runner assigned stay assigned, even if the host now has fewer processors', () => {
    const spread = new CpuSpread([0, 1])
    spread.adopt('a', 2, [0, 7])
    assert.deepEqual(spread.take('b', 1), [1])
    spread.release('a')
    assert.deepEqual(spread.take('c', 1), [0])
  })
})
