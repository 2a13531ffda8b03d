import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type { Cgroup } from '../cgroup/cgroup.ts'
import { Refresher } from './refresh.ts'

/** Makes a fake cgroup whose memory cannot be read. The fake counts how often the number of killed processes is read. */
const fakeCgroup = () => {
  const fake = { kills: 3, refusals: 0, reads: 0 }
  const cgroup = {
    outOfMemoryKills: () => {
      fake.reads++
      return fake.kills
    },
    refusedProcesses: () => fake.refusals,
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

  test('each out-of-memory kill and each refused process of a sandbox is reported once', async () => {
    const { fake, cgroup } = fakeCgroup()
    const told: [string, number][] = []
    const refresher = new Refresher({
      onLook: () => undefined,
      onKills: (_, kills) => told.push(['kills', kills]),
      onRefusals: (_, refusals) => told.push(['refusals', refusals]),
      onError: (error) => assert.fail(String(error)),
    })
    try {
      refresher.add('box', { cgroup, directory: '/nowhere', memoryGiB: 1 })
      for (const [kills, refusals] of [
        [5, 1],
        [5, 1],
        [6, 4],
      ] as const) {
        Object.assign(fake, { kills, refusals })
        await refresher.look()
      }
      assert.deepEqual(told, [
        ['kills', 2],
        ['refusals', 1],
        ['kills', 1],
        ['refusals', 3],
      ])
    } finally {
      refresher.close()
    }
  })
})
