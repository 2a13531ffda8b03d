import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type { Cgroup } from '../cgroup/cgroup.ts'
import { Refresher } from './refresh.ts'

/** Makes a fake cgroup whose memory cannot be read. The fake counts how often the number of killed processes is read. */
const fakeCgroup = () => {
  const fake = { kills: 3, reads: 0 }
  const cgroup = {
    outOfMemoryKills: () => {
      fake.reads++
      return fake.kills
    },
    refusedProcesses: () => 0,
    memoryInUse: () => undefined,
  } as unknown as Cgroup
  return { fake, cgroup }
}

suite('`Refresher` reads the memory use and the out-of-memory kills of running sandboxes at intervals', () => {
  test('out-of-memory kills before a sandbox’s memory limit is changed are still reported afterwards', async () => {
    const { fake, cgroup } = fakeCgroup()
    const told: [string, number][] = []
    const refresher = new Refresher({
      onLook: (_, kills) => told.push(['look', kills]),
      onKills: (_, kills) => told.push(['kills', kills]),
      onRefusals: () => assert.fail('none was refused'),
      onError: (error) => assert.fail(String(error)),
    })
    try {
      const refreshed = { cgroup, directory: '/nowhere', memoryGiB: 1 }
      refresher.add('box', refreshed)
      fake.kills = 5
      refresher.add('box', { ...refreshed, memoryGiB: 2 })
      assert.equal(fake.reads, 1)
      await refresher.look()
      assert.deepEqual(told, [
        ['look', 3],
        ['look', 5],
        ['kills', 2],
      ])
    } finally {
      refresher.close()
    }
  })
})
