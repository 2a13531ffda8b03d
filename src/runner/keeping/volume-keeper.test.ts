import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { silentLog } from '#src/kit/log.ts'
import type { VolumeAssignment } from '#src/wire/runner-link.ts'
import { VolumeKeeper } from './volume-keeper.ts'

const removalOf = (volumeId: string): VolumeAssignment => ({ volumeId, driver: 'disk', target: 'absent' })

/** Makes a keeper of volumes. The test decides when each removal ends. */
const openKeeper = () => {
  const asked: string[] = []
  const told: string[] = []
  const ends = new Map<string, PromiseWithResolvers<void>>()
  const keeper = new VolumeKeeper({
    host: {
      removeVolume: ({ volumeId }) => {
        asked.push(volumeId)
        const end = Promise.withResolvers<void>()
        ends.set(volumeId, end)
        return end.promise
      },
    },
    report: ({ volumeId }) => void told.push(volumeId),
    log: silentLog(),
  })
  const settle = () => new Promise((resolve) => setImmediate(resolve))
  return { keeper, asked, told, ends, settle }
}

suite('the removal of volumes', () => {
  test('if control requests a volume’s removal twice, the runner removes the volume once, and reports this', async () => {
    const { keeper, asked, told, ends, settle } = openKeeper()
    keeper.takeAll([removalOf('one')])
    keeper.takeAll([removalOf('one')])
    await settle()
    assert.deepEqual([asked, told], [['one'], []])
    ends.get('one')?.resolve()
    await settle()
    assert.deepEqual([asked, told], [['one'], ['one']])
    // Control requests a removal again if control has received no report about the removal.
    keeper.takeAll([removalOf('one')])
    await settle()
    assert.deepEqual(asked, ['one', 'one'])
  })

  test('a failed removal of a volume delays no other removal, and is retried when control’s next list comes', async () => {
    const { keeper, asked, told, ends, settle } = openKeeper()
    keeper.takeAll([removalOf('bad'), removalOf('good')])
    await settle()
    ends.get('bad')?.reject(new Error('the disk does not answer'))
    ends.get('good')?.resolve()
    await settle()
    assert.deepEqual([asked, told], [['bad', 'good'], ['good']])
    keeper.takeAll([removalOf('bad')])
    await settle()
    ends.get('bad')?.resolve()
    await settle()
    assert.deepEqual(told, ['good', 'bad'])
  })

  test('a shared directory that does not answer does not delay removals of volumes on the host’s disk', async () => {
    const { keeper, asked, settle } = openKeeper()
    keeper.takeAll(['a', 'b', 'c'].map((volumeId) => ({ ...removalOf(volumeId), driver: 'directory' })))
    keeper.takeAll([removalOf('disk')])
    await settle()
    assert.deepEqual(asked, ['a', 'b', 'disk'])
  })

  test('a runner removes at most two volumes at a time', async () => {
    const { keeper, asked, ends, settle } = openKeeper()
    keeper.takeAll(['a', 'b', 'c'].map(removalOf))
    await settle()
    assert.deepEqual(asked, ['a', 'b'])
    keeper[Symbol.dispose]()
    ends.get('a')?.resolve()
    await settle()
    assert.deepEqual(asked, ['a', 'b'])
  })
})
