import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { findGrownSlabs, parseUnchargedSlabs, readUnchargedSlabs } from './slabs.ts'

const slabinfo = `slabinfo - version: 2.1
# name            <active_objs> <num_objs> <objsize> <objperslab> <pagesperslab> : tunables <limit> <batchcount> <sharedfactor> : slabdata <active_slabs> <num_slabs> <sharedavail>
dentry            100 200    192   21    1 : tunables    0    0    0 : slabdata     10     10      0
kmalloc-cg-1k      10  20   1024   16    4 : tunables    0    0    0 : slabdata      2      2      0
kmalloc-rcl-64     10  20     64   64    1 : tunables    0    0    0 : slabdata      2      2      0
kmalloc-1k         30  40   1024   16    4 : tunables    0    0    0 : slabdata      3      3      0
kmalloc-rnd-07-64  50  60     64   64    1 : tunables    0    0    0 : slabdata      1      1      0
`

suite('slab caches of the kernel that count towards no sandbox’s memory limit', () => {
  test('`parseUnchargedSlabs` returns the kmalloc caches that no cgroup is charged for, with their bytes', () => {
    const expected = [
      ['kmalloc-1k', 30 * 1024],
      ['kmalloc-rnd-07-64', 50 * 64],
    ]
    assert.deepEqual([...parseUnchargedSlabs(slabinfo)], expected)
  })

  test('`parseUnchargedSlabs` returns nothing if the kernel has no separate caches for charged objects', () => {
    assert.equal(parseUnchargedSlabs(slabinfo.replaceAll('kmalloc-cg', 'other')).size, 0)
  })

  test('`readUnchargedSlabs` can parse the slab caches of the kernel that the test runs on', () => {
    for (const [name, bytes] of readUnchargedSlabs()) assert.ok(bytes >= 0, name)
  })

  test('`findGrownSlabs` returns the caches that together explain at least half of the growth, or none', () => {
    const before = new Map([
      ['a', 100],
      ['b', 100],
      ['c', 100],
    ])
    const after = new Map([
      ['a', 400],
      ['b', 110],
      ['c', 300],
    ])
    assert.deepEqual(findGrownSlabs(before, after, 600), ['a', 'c'])
    assert.deepEqual(findGrownSlabs(before, after, 1200), [])
  })
})
