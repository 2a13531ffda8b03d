import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { addressOf, slotLimit } from '../network/names.ts'
import { lastBase, mapToOwn, ownBase, uidBase, uidCount } from './ids.ts'

suite('ids of sandboxes on the host', () => {
  test('each sandbox of a runner has its own range of ids, and none has the range of disks', () => {
    for (const base of ['10.0.0.0', '10.127.240.0', '10.255.240.0'].map((dotted) =>
      Buffer.from(dotted.split('.').map(Number)).readUInt32BE(),
    )) {
      const bases = Array.from({ length: slotLimit }, (_, index) => ownBase(addressOf({ base }, index + 1)))
      assert.equal(new Set(bases).size, slotLimit)
      for (const each of bases) assert.equal((each - uidBase) % uidCount, 0)
      // Above the ids that useradd and LXD use.
      assert.ok(Math.min(...bases) >= 1_001_000_000)
      assert.ok(Math.max(...bases) <= lastBase)
    }
    assert.ok(lastBase + uidCount <= 2 ** 31)
  })

  test('files of the host’s root belong to root in every range', () => {
    assert.equal(mapToOwn(300_000), '0 0 1\n165536 300000 65536\n')
  })
})
