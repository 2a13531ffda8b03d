// Tests that a disk keeps its base image's files when it moves, even if the new host has a different image with the same name.
// Needs root.
import assert from 'node:assert/strict'
import { cpSync, mkdirSync, readdirSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { silentLog } from '#src/kit/log.ts'
import { giveToSandboxes, makeSmallImage } from '#src/runner/testing/small-image.ts'
import { builtLauncher, TestHost } from '#src/runner/testing/test-host.ts'
import type { Assignment, WrittenArchive } from '#src/wire/runner-link.ts'
import { needsRoot } from '#test/needs-root.ts'
import { travelThrough } from '../archive/bases.ts'
import { openStore } from '../archive/store.ts'
import { Scratch } from '../archive/testing/disks.ts'
import { standardLimits } from '../images/limits.ts'
import { type ImageStore, openImageStore } from '../images/store.ts'

suite('a disk that moves to a host with a different base image of the same name', { skip: needsRoot }, () => {
  const scratch = new Scratch()
  let one: TestHost
  let two: TestHost
  const stores = new Map<string, ImageStore>()

  const start = async (name: string) => {
    const rootfs = scratch.at(`${name}/images/default/rootfs`)
    mkdirSync(rootfs, { recursive: true })
    cpSync(scratch.at('small'), rootfs, { recursive: true, preserveTimestamps: true })
    writeFileSync(join(rootfs, 'etc/version'), `${name}\n`)
    giveToSandboxes(rootfs)
    const description = { user: 'daytona', env: { MADE: name } }
    writeFileSync(scratch.at(`${name}/images/default/image.json`), JSON.stringify({ recipe: 'r', description }))
    const brought = openImageStore({
      poolDir: scratch.at(name),
      cacheDir: scratch.at('cache'),
      log: silentLog(),
      onProgress: () => {},
      publicNetwork: () => Promise.reject(new Error('nothing here is on the Internet')),
      limits: { ...standardLimits, keepFreeBytes: 0 },
      travel: travelThrough(openStore({ kind: 'directory', path: scratch.at('store') }), builtLauncher(), true),
    })
    stores.set(name, brought)
    return TestHost.start({ brought, archives: scratch.at('store') })
  }
  before(async () => {
    makeSmallImage(scratch.make('small'))
    one = await start('one')
    two = await start('two')
  })
  after(async () => {
    await one?.[Symbol.asyncDispose]()
    await two?.[Symbol.asyncDispose]()
    scratch[Symbol.dispose]()
  })

  let generation = 1
  const look = 'cat /etc/version /root/file'
  const archive = async (host: TestHost, assignment: Assignment): Promise<WrittenArchive> => {
    generation += 1
    const id = `archive-${generation}`
    await host.host.archive({ ...assignment, isNew: false, generation, target: 'archived', archive: { id } })
    const held = host.host.get(assignment.sandboxId)
    assert.ok(held?.archive, held?.refused ?? 'it has no archive')
    return held.archive
  }
  const restore = async (host: TestHost, assignment: Assignment, { id, sha256 }: WrittenArchive) => {
    generation += 1
    await host.host.start({ ...assignment, isNew: false, generation, archive: { id, sha256 } })
  }
  test('a disk restored on another host, and later on the first host again, keeps the files of its base', async () => {
    const assignment = await one.started({ image: 'default' })
    const { sandboxId } = assignment
    await one.run(sandboxId, 'echo own > /root/file')
    const written = await archive(one, assignment)
    assert.match(written.base ?? '', /^base-/)
    // If the base is not in the store, the other host refuses the disk.
    const stored = scratch.at(`store/images/${written.base}`)
    renameSync(stored, `${stored}.away`)
    await restore(two, assignment, written)
    assert.match(two.host.get(sandboxId)?.refused ?? '', /base image is not in the archive store/)
    assert.equal(two.host.get(sandboxId)?.status, 'archived')
    renameSync(`${stored}.away`, stored)
    await one.host.destroy(sandboxId)

    await restore(two, assignment, written)
    assert.equal((await two.run(sandboxId, look)).output, 'one\nown')
    const own = await two.started({ image: 'default' })
    assert.equal((await two.run(own.sandboxId, 'cat /etc/version')).output, 'two')
    // After a restart, the runner of host `two` still finds the files of the disk's own base.
    await two.close()
    await two.open()
    await two.host.stop({ ...assignment, generation: ++generation, target: 'stopped', signal: 'SIGKILL' })
    await two.host.start({ ...assignment, isNew: false, generation: ++generation })
    assert.equal((await two.run(sandboxId, look)).output, 'one\nown')

    const again = await archive(two, assignment)
    assert.equal(again.base, written.base)
    await two.host.destroy(sandboxId)
    await restore(one, assignment, again)
    assert.equal((await one.run(sandboxId, look)).output, 'one\nown')
    assert.deepEqual(readdirSync(scratch.at('one/image-trees')), [])
    await one.host.destroy(sandboxId, 'with archives')
    await two.host.destroy(own.sandboxId)
  })

  test('a snapshot, sandboxes made of it, and their saves keep the snapshot’s base on another host', async () => {
    const assignment = await one.started({ image: 'default' })
    await one.run(assignment.sandboxId, 'echo copied > /root/file')
    await one.host.snapshot(assignment.sandboxId, 'made')
    const signal = AbortSignal.timeout(60_000)
    const { sha256, base } = await one.host.storeTemplate('made', signal)
    assert.match(base ?? '', /^base-/)
    await two.host.bringTemplate('made', { sha256, maxGiB: 1 }, { signal, onProgress: () => {} })
    const copy = await two.started({ image: 'made' })
    assert.equal((await two.run(copy.sandboxId, look)).output, 'one\ncopied')
    const stopped = { ...copy, generation: ++generation, target: 'stopped', signal: 'SIGKILL' } as const
    await two.host.stop(stopped)
    const saved = await two.host.save({ ...stopped, save: { id: 'saved' } })
    assert.equal(saved?.base, base)
    await restore(one, copy, saved!)
    assert.equal((await one.run(copy.sandboxId, look)).output, 'one\ncopied')
    const inUse = await two.host.basesInUse()
    assert.ok(
      [...inUse].every((image) => stores.get('two')!.rootfsOf(image) !== undefined),
      [...inUse].join(),
    )
    for (const { sandboxId } of [assignment, copy]) await one.host.destroy(sandboxId)
    await two.host.destroy(copy.sandboxId)
  })
})
