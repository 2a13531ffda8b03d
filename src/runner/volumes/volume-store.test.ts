// Tests volumes in real sandboxes. Needs root; without root the suites are skipped.
import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { silentLog } from '#src/kit/log.ts'
import type { AssignedVolume, Assignment } from '#src/wire/runner-link.ts'
import { needsRoot } from '#test/needs-root.ts'
import { uidBase } from '../oci/ids.ts'
import { makeSmallImage } from '../testing/small-image.ts'
import { builtLauncher, cannotMapOwners, TestHost } from '../testing/test-host.ts'
import { VolumeStore } from './volume-store.ts'

const tools = ['ln', 'chmod', 'chown', 'readlink', 'cp', 'cmp', 'sync']

const volumeAt = (mountPath: string, given: Partial<AssignedVolume> = {}): AssignedVolume => ({
  volumeId: randomUUID(),
  driver: 'disk',
  sizeGiB: 1,
  isNew: true,
  mountPath,
  ...given,
})

/** Returns the assignment of a volume after its first use, with `isNew` absent. */
const used = (
  { isNew, subpath: before, ...volume }: AssignedVolume,
  mountPath: string,
  subpath?: string,
): AssignedVolume => ({
  ...volume,
  mountPath,
  ...(subpath === undefined ? {} : { subpath }),
})

const startWith = (box: TestHost, volumes: AssignedVolume[], changes: Partial<Assignment> = {}) =>
  box.started({ image: 'tools', volumes, ...changes })

suite('a volume on the disk of the runner', { skip: needsRoot }, () => {
  let box: TestHost
  before(async () => {
    box = await TestHost.start()
    makeSmallImage(join(box.directory, 'tools'), tools)
  })
  after(async () => {
    await box?.[Symbol.asyncDispose]()
  })

  const pathOf = ({ volumeId }: AssignedVolume) => join(box.directory, 'runner/pool/volumes', volumeId)
  const run = async ({ sandboxId }: Assignment, line: string, user = 'root') => {
    const { exitCode, output } = await box.run(sandboxId, line, user)
    assert.equal(exitCode, 0, `${line}: ${output}`)
    return output
  }

  test('two sandboxes share the files of a volume, and a user id owns the same files in both sandboxes', async (t) => {
    const data = volumeAt('/data')
    const one = await startWith(box, [data])
    const two = await startWith(box, [used(data, '/home/daytona/shared')])
    assert.equal(await run(one, 'stat -c "%u %g %a" /data'), '0 0 777')
    await run(one, 'echo from-one > /data/file; chmod 600 /data/file', 'daytona')
    assert.equal(await run(two, 'stat -c "%u %g %a" /home/daytona/shared/file'), '1000 1000 600')
    await run(
      two,
      'cd /home/daytona/shared; cat file; echo from-two >> file; mv file renamed; ln renamed linked',
      'daytona',
    )
    assert.equal(await run(one, 'cat /data/linked; stat -c %h /data/renamed', 'daytona'), 'from-one\nfrom-two\n2')
    assert.equal(statSync(join(pathOf(data), 'renamed')).uid, uidBase + 1000)
    await run(one, 'echo secret > /data/roots; chmod 600 /data/roots')
    assert.notEqual((await box.run(two.sandboxId, 'cat /home/daytona/shared/roots', 'daytona')).exitCode, 0)
    if (!(await box.mapsOwners())) t.diagnostic(cannotMapOwners)
  })

  test('devices and set-id bits have no effect in a volume, and the kernel enforces the volume’s size', async () => {
    const data = volumeAt('/data', { sizeGiB: 0.03 })
    const one = await startWith(box, [data])
    const options = (await run(one, 'cat /proc/self/mountinfo')).split('\n').find((line) => line.includes(' /data '))
    assert.match(options ?? '', / \S*nosuid,nodev\S* /)
    const full = await box.run(one.sandboxId, 'dd if=/dev/zero of=/data/big bs=1M count=60', 'daytona')
    assert.match(full.output, /Disk quota exceeded|No space left/)
    assert.ok(statSync(join(pathOf(data), 'big')).size < 32 * 2 ** 20)
    // A full volume does not take space from the sandbox's own disk. If files are removed, the volume has space again.
    await run(one, 'echo fine > /root/file')
    await run(one, 'rm /data/big; dd if=/dev/zero of=/data/small bs=1M count=1')
    const two = await startWith(box, [used(data, '/data')])
    await run(two, 'dd if=/dev/zero of=/data/more bs=1M count=1')
  })

  test('all bytes of a file that was copied from another volume count towards the volume’s size limit', async () => {
    const [small, other] = [volumeAt('/small', { sizeGiB: 0.03 }), volumeAt('/other')]
    const one = await startWith(box, [small, other])
    await run(one, 'dd if=/dev/zero of=/other/big bs=1M count=60; sync')
    const full = await box.run(one.sandboxId, 'cp --reflink=auto /other/big /small/big')
    assert.match(full.output, /Disk quota exceeded|No space left/)
    assert.notEqual((await box.run(one.sandboxId, 'cp --reflink=always /other/big /small/copy')).exitCode, 0)
    await run(
      one,
      'rm -f /small/*; dd if=/dev/zero of=/small/file bs=1M count=1; cp --reflink=auto /small/file /small/two',
    )
    await run(one, 'cmp /small/file /small/two; rm /other/big')
  })

  test('a start makes a missing subpath of a volume; it fails if the subpath is a file or contains a link', async () => {
    const data = volumeAt('/data', { subpath: 'users/alice' })
    const alice = await startWith(box, [data])
    assert.equal(await run(alice, 'stat -c "%u %a" /data'), '0 777')
    await run(alice, 'echo mine > /data/file', 'daytona')
    const all = await startWith(box, [used(data, '/all')])
    assert.equal(await run(all, 'cat /all/users/alice/file'), 'mine')
    await run(
      all,
      'cd /all; ln -s /etc etc; ln -s users/alice inner; ln -s ../../../.. up; echo x > plain; mkdir sub; ln -s / sub/root',
    )
    for (const subpath of ['etc', 'inner', 'up', 'up/etc', 'plain', 'plain/x', 'sub/root/etc']) {
      await assert.rejects(
        startWith(box, [used(data, '/data', subpath)]),
        /could not be started: a volume .* in the subpath: /,
        subpath,
      )
    }
    assert.equal(await run(all, 'ls /all/users/alice'), 'file')
    // If the directory at the subpath exists, it keeps its mode and owner.
    await run(all, 'mkdir -m 700 /all/private; chown 1000 /all/private')
    const own = await startWith(box, [used(data, '/data', 'private')])
    assert.equal(await run(own, 'stat -c "%u %a" /data'), '1000 700')
  })

  test('a start makes a missing mount path of a volume; it fails if the path is a file or contains a link', async () => {
    const shared = volumeAt('/shared')
    const first = await startWith(box, [shared])
    await run(first, 'ln -s / /shared/root')
    // A mount at one of these paths would hide files that Alcove needs, or would replace the root directory.
    const targets = ['/', '..', '/proc', '/proc/1', '/dev', '/dev/.alcove', '/sys', '/etc', '/nowhere', '/shared/root']
    const links = targets.map((target, at) => `ln -s ${target} /link-${at}`).join('; ')
    await run(first, `${links}; mkdir /real; ln -s /real /behind; echo x > /file`)
    const paths = [...targets.map((_, at) => `/link-${at}`), '/link-0/x', '/behind/deep/path']
    let generation = 2
    const startAt = async (mountPath: string) => {
      await box.host.stop({ ...first, target: 'stopped', generation: generation++ })
      const volumes = [used(shared, '/shared'), volumeAt(mountPath)]
      await box.host.start({ ...first, volumes, generation: generation++ })
    }
    for (const path of paths)
      await assert.rejects(startAt(path), new RegExp(`of its mountPath ${path}: there is a symbolic link`), path)
    for (const path of ['/file', '/file/x'])
      await assert.rejects(startAt(path), /mountPath \/file.*: there is something that is not a directory/)
    await startAt('/real/deep/path')
    await run(first, 'echo fine > /real/deep/path/file; cat /shared/root/file')
  })

  test('a pause, restart, archive or fork of a sandbox keeps its volume’s files; a snapshot omits them', async () => {
    const data = volumeAt('/data')
    const one = await startWith(box, [data])
    await run(one, 'echo kept > /data/file')
    await box.host.pause({ ...one, target: 'paused', generation: 2 })
    await box.host.start({ ...one, generation: 3 })
    assert.equal(await run(one, 'cat /data/file'), 'kept')
    await box.close()
    await box.open()
    assert.equal(await run(one, 'cat /data/file'), 'kept')
    const fork = box.assignment({ image: 'tools', isNew: true, forkOf: one.sandboxId, volumes: [used(data, '/data')] })
    await box.host.start(fork)
    await run(fork, 'echo forked >> /data/file')
    assert.equal(await run(one, 'cat /data/file'), 'kept\nforked')
    await box.host.snapshot(one.sandboxId, 'copy')
    const copy = await box.started({ image: 'copy', isNew: true })
    assert.equal((await box.run(copy.sandboxId, 'ls /data')).output, '')
    await box.host.archive({ ...one, target: 'archived', generation: 4, archive: { id: randomUUID() } })
    const archive = box.host.get(one.sandboxId)?.archive
    assert.ok(archive)
    await box.host.start({ ...one, generation: 5, volumes: [used(data, '/data')], archive })
    assert.equal(await run(one, 'cat /data/file'), 'kept\nforked')
    await box.cutPower()
    await box.host.start({ ...one, generation: 6, volumes: [used(data, '/data')] })
    assert.equal(await run(one, 'cat /data/file'), 'kept\nforked')
  })

  test('a start fails if a volume that was used before is missing; an incomplete new volume is completed', async () => {
    const gone = volumeAt('/data')
    await assert.rejects(startWith(box, [used(gone, '/data')]), /are missing on this host/)
    assert.equal(existsSync(pathOf(gone)), false)
    // Makes an unfinished volume. A runner leaves such a volume if it is killed after the first step of making the volume.
    const half = volumeAt('/data')
    execFileSync('btrfs', ['subvolume', 'create', pathOf(half)], { stdio: 'ignore' })
    const one = await startWith(box, [half])
    assert.equal(await run(one, 'stat -c "%u %a" /data'), '0 777')
    await run(one, 'chmod 700 /data; chown 1000 /data')
    const two = await startWith(box, [half])
    assert.equal(await run(two, 'stat -c "%u %a" /data'), '1000 700')
  })

  test('three sandboxes that start at the same time with the same new volume share that volume', async () => {
    const data = volumeAt('/data')
    const started = await Promise.all([1, 2, 3].map(() => startWith(box, [data])))
    for (const [at, each] of started.entries()) await run(each, `echo ${at} > /data/${at}`)
    assert.equal(await run(started[0]!, 'ls /data'), '0\n1\n2')
  })

  test('`removeVolume` removes a whole volume, may be repeated, and leaves other volumes unchanged', async () => {
    const [data, other] = [volumeAt('/data'), volumeAt('/other')]
    const { sandboxId } = await startWith(box, [data, other])
    await box.run(sandboxId, 'mkdir -p /data/a/b; echo x > /data/a/b/c; echo y > /other/file')
    await box.host.destroy(sandboxId)
    await box.host.removeVolume(data)
    await box.host.removeVolume(data)
    assert.equal(existsSync(pathOf(data)), false)
    assert.deepEqual(readdirSync(pathOf(other)), ['file'])
    await assert.rejects(box.host.removeVolume({ volumeId: '../disks', driver: 'disk' }), /no name/)
  })
})

suite('a volume in a directory of the operator', { skip: needsRoot }, () => {
  // ramfs is tested in place of NFS: on both, mounts cannot map the owners of files.
  for (const type of ['tmpfs', 'ramfs'])
    test(`hosts that mount the same directory share its volumes; without the mount no volume is made: ${type}`, async () => {
      await using ends = new AsyncDisposableStack()
      const shared = mkdtempSync(join(tmpdir(), 'alcove-volumes-'))
      ends.defer(() => rmSync(shared, { recursive: true }))
      execFileSync('mount', ['-t', type, '-o', 'mode=755', type, shared])
      ends.defer(() => void spawnSync('umount', ['--lazy', shared]))
      const open = async () => {
        const host = ends.use(new TestHost({ volumesDirectory: shared }))
        makeSmallImage(join(host.directory, 'tools'), tools)
        await host.open()
        return host
      }
      const [one, two] = [await open(), await open()]
      assert.equal(one.host.capabilities.volumes, 'directory')
      const data = volumeAt('/data', { driver: 'directory', subpath: 'a' })
      const first = await startWith(one, [data])
      assert.equal(
        (await one.run(first.sandboxId, 'echo shared > /data/file; chmod 600 /data/file', 'daytona')).exitCode,
        0,
      )
      const second = await startWith(two, [used(data, '/data', 'a')])
      assert.equal((await two.run(second.sandboxId, 'cat /data/file', 'daytona')).output, 'shared')
      assert.equal((await two.run(second.sandboxId, 'stat -c %u:%a /data/file /data')).output, '1000:600\n0:777')
      const own = join(shared, 'alcove-volumes')
      assert.equal(statSync(own).mode & 0o777, 0o700)
      assert.equal(statSync(join(own, data.volumeId, 'a/file')).uid, uidBase + 1000)
      await one.host.destroy(first.sandboxId)
      await two.host.destroy(second.sandboxId)
      // Makes the directory that a runner leaves if it is killed while it removes the volume.
      mkdirSync(join(own, `.leaving-${data.volumeId}`))
      await Promise.all([one, two].map(({ host }) => host.removeVolume(data)))
      await one.host.removeVolume(data)
      assert.deepEqual(readdirSync(own), [])
      execFileSync('umount', ['--lazy', shared])
      const late = volumeAt('/data', { driver: 'directory' })
      await assert.rejects(startWith(one, [late]), /not mounted on this host/)
      await assert.rejects(one.host.removeVolume(late), /not mounted on this host/)
      assert.deepEqual(readdirSync(shared), [])
    })

  test('a runner whose volume directory is not mounted offers no volumes', async () => {
    // The operator's directory does not exist, but its parent is on a mounted file system.
    const directory = mkdtempSync('/dev/shm/alcove-volumes-')
    const parts = {
      disks: undefined as never,
      launcher: builtLauncher(),
      mapsOwners: false,
      mountPointOf: () => '',
      log: silentLog(),
    }
    try {
      assert.equal((await VolumeStore.open({ ...parts, directory: '/' })).driver, undefined)
      assert.equal((await VolumeStore.open({ ...parts, directory: join(directory, 'none') })).driver, undefined)
      const plain = join(directory, 'none')
      assert.equal(existsSync(plain), false)
      assert.equal((await VolumeStore.open({ ...parts, directory: undefined })).driver, 'disk')
    } finally {
      rmSync(directory, { recursive: true })
    }
  })
})
