import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { addressOf, slotLimit } from '../network/names.ts'
import { commonIds, groupLargeIds, idsIn, idsNamedIn, mapToOwn, ownIds, sharedIds, uidCount } from './ids.ts'

const full = groupLargeIds(Array.from({ length: 4096 }, (_, at) => commonIds + at)) ?? assert.fail()

suite('user ids of sandboxes on the host', () => {
  test('no two sandboxes of a runner share a host id, and useradd and LXD assign none of these host ids', () => {
    for (const base of ['10.0.0.0', '10.127.240.0', '10.255.240.0'].map((dotted) =>
      Buffer.from(dotted.split('.').map(Number)).readUInt32BE(),
    )) {
      const ranges = Array.from({ length: slotLimit }, (_, index) => ownIds(addressOf({ base }, index + 1), full))
        .flat()
        .sort((a, b) => a.outside - b.outside)
      for (const [at, { outside, count }] of ranges.entries())
        assert.ok(outside + count <= (ranges[at + 1]?.outside ?? 2 ** 32 - 2))
      // useradd and LXD assign only ids below 1,001,000,000.
      assert.ok(Math.min(...ranges.map(({ outside }) => outside)) >= 1_001_000_000)
    }
  })

  test('user ids up to 65535 have the host ids that earlier versions of Alcove used, below 2^31', () => {
    const [low] = ownIds('10.127.240.2')
    assert.deepEqual(low, { inside: 0, outside: 1_588_692_640, count: uidCount })
    for (let n = 0; n < 2 ** 16; n += 97) {
      const [{ outside, count } = assert.fail()] = ownIds(`10.0.${n >> 8}.${n & 255}`)
      assert.ok(outside + count <= 2 ** 31)
    }
  })

  test('a sandbox may use all user ids below 200704, and above that only the user ids of its image', () => {
    const groups = groupLargeIds([95_607, 197_609, 2_000_000, 2_000_002, 1_000_660_000, 1_000_660_001])
    assert.deepEqual(groups, [
      { first: 2_000_000, count: 1 },
      { first: 2_000_002, count: 1 },
      { first: 1_000_660_000, count: 2 },
    ])
    const ranges = ownIds('10.0.0.2', groups)
    const isCovered = (id: number) => ranges.some(({ inside, count }) => id >= inside && id < inside + count)
    assert.equal(commonIds, 200_704)
    for (const id of [0, 65_535, 65_536, 95_607, 197_609, 200_703, 2_000_000, 2_000_002, 1_000_660_000, 1_000_660_001])
      assert.ok(isCovered(id), `${id}`)
    for (const id of [commonIds, 2_000_001, 1_000_660_002]) assert.ok(!isCovered(id), `${id}`)
  })

  test('neighbouring user ids above 65535 share one range of the id map; too many ranges are refused', () => {
    const spread = (count: number, step: number) => Array.from({ length: count }, (_, at) => 10_000_000 + at * step)
    const groups = groupLargeIds([...spread(200, 3), ...spread(100, 1_000_000)]) ?? assert.fail()
    assert.ok(groups.length <= 128)
    for (const id of [...spread(200, 3), ...spread(100, 1_000_000)])
      assert.ok(
        groups.some(({ first, count }) => id >= first && id < first + count),
        `${id}`,
      )
    assert.equal(groupLargeIds(spread(4096, 1))?.length, 1)
    assert.equal(groupLargeIds(spread(4097, 1)), undefined)
    assert.equal(groupLargeIds(spread(129, 1_000_000)), undefined)
    assert.equal(groupLargeIds(spread(128, 1_000_000))?.length, 128)
    assert.deepEqual(groupLargeIds([0, 95_607]), [])
  })

  test('every id map for mounts leaves the id 0 unchanged; the longest id map is within the kernel’s limit', () => {
    assert.equal(mapToOwn(sharedIds), '0 0 1\n165536 165536 65536\n')
    assert.match(mapToOwn(ownIds('10.0.0.2', full)), /^0 0 1\n165536 \d+ 65536\n231072 \d+ 135168\n366240 \d+ 4096\n$/)
    const longest = groupLargeIds(Array.from({ length: 128 }, (_, at) => 4_200_000_000 + at * 70_000))
    assert.ok(mapToOwn(ownIds('10.255.255.255', longest)).length < 4096)
  })

  test('`idsIn` finds the user ids in a USER value, and `idsNamedIn` the user ids in a Dockerfile', () => {
    assert.deepEqual(['app', '1000660000', '7:2000000', 'a:5', ''].map(idsIn), [
      [],
      [1_000_660_000],
      [7, 2_000_000],
      [5],
      [],
    ])
    const definition =
      'FROM a@sha256:0000000000000001\nRUN useradd -u 2000000 x\nCOPY --chown=1000660000:3 a b\nUSER 700000\nENV V=1.8123456'
    assert.deepEqual(idsNamedIn(definition), [2_000_000, 1_000_660_000, 700_000])
  })
})
