// Tests copying templates from one pool to another through a store. Needs root.
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { silentLog } from '#src/kit/log.ts'
import { GiB } from '#src/runner/cgroup/sandbox-limits.ts'
import { needsRoot } from '#test/needs-root.ts'
import type { Archive } from '../archive/pack.ts'
import { type ObjectStore, openStore } from '../archive/store.ts'
import { fails } from '../archive/testing/archives.ts'
import { Scratch } from '../archive/testing/disks.ts'
import { runSteps } from '../launch.ts'
import { builtLauncher } from '../testing/test-host.ts'
import { openStoragePool, type StoragePool, unmountPool } from './pool.ts'
import { bringTemplate, packTemplate } from './travel.ts'

const launcher = builtLauncher()
const image = 'snapshot-1.0'

for (const useBtrfs of [true, false])
  suite(`copying templates between pools ${useBtrfs ? 'on btrfs' : 'of plain directories'}`, {
    skip: needsRoot,
  }, () => {
    const scratch = new Scratch()
    let store: ObjectStore
    let [one, other]: StoragePool[] = []
    let packed: Archive
    const open = (name: string) =>
      openStoragePool({ directory: scratch.at(name), launcher, log: silentLog(), useBtrfs, imageBytes: GiB })
    const bring = (sha256: string, mostGiB = 1) =>
      bringTemplate(
        { pool: other!, launcher, store, image, signal: AbortSignal.timeout(60_000) },
        sha256,
        mostGiB,
        () => {},
      )

    before(async () => {
      store = openStore({ kind: 'directory', path: scratch.at('store') })
      one = await open('one')
      other = await open('other')
      await runSteps(launcher, one.stepsToMake('box', 'base'))
      writeFileSync(join(one.diskOf('box').upper, 'file'), 'y')
      await one.makeTemplate(image, 'box', 'base')
      packed = await packTemplate({ pool: one, store, image })
    })
    after(async () => {
      await Promise.all([one?.close(), other?.close(), store.close()])
      for (const name of ['one', 'other']) await unmountPool(scratch.at(name))
      scratch[Symbol.dispose]()
    })

    test('if a template is packed into the store twice, both archives are equal', async () => {
      assert.deepEqual(await packTemplate({ pool: one!, store, image }), packed)
    })

    test('if a template’s archive is damaged or has a wrong hash, unpacking fails, and no file is left', async () => {
      await assert.rejects(bring('0'.repeat(64)), fails('damaged', /its table of contents does not match/))
      const [chunk] = await Array.fromAsync(store.list(`images/${image}/chunks/`))
      assert.ok(chunk)
      const content = await store.get(chunk.key, 2 ** 30)
      assert.ok(content)
      await store.put(chunk.key, content.subarray(0, 20))
      await assert.rejects(bring(packed.sha256), fails('damaged', /damaged/))
      await store.remove(chunk.key)
      await assert.rejects(bring(packed.sha256), fails('missing', /missing/))
      assert.deepEqual(await other!.listTemplates(), [])
      assert.deepEqual(await packTemplate({ pool: one!, store, image }), packed)
    })

    test('a sandbox starts from a template that was copied to another pool, with the same base image', async () => {
      await bring(packed.sha256)
      await bring(packed.sha256)
      assert.deepEqual(await other!.listTemplates(), [image])
      assert.equal(await other!.baseOf({ template: image }), 'base')
      await other!.copyDisk({ template: image }, 'child', 'base', 1)
      assert.equal(readFileSync(join(other!.diskOf('child').upper, 'file'), 'utf8'), 'y')
    })
  })
