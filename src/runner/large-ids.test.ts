// Tests users with ids above 65535, in real sandboxes of images with files of such users. Needs root.
import assert from 'node:assert/strict'
import { existsSync, readFileSync, statSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { silentLog } from '#src/kit/log.ts'
import type { Assignment } from '#src/wire/runner-link.ts'
import { needsRoot } from '#test/needs-root.ts'
import { Library } from './images/library.ts'
import { standardLimits } from './images/limits.ts'
import { makeImage, type TarEntry, tarOf, writeLayout } from './images/testing/oci-image.ts'
import { uidBase } from './oci/ids.ts'
import { cannotMapOwners, openTestHostIn, TestHost } from './testing/test-host.ts'

const busybox = '/bin/busybox'
const needs = needsRoot || (existsSync(busybox) ? false : 'needs busybox-static')
const applets = ['sh', 'cat', 'chown', 'echo', 'id', 'ls', 'mkdir', 'mv', 'rm', 'stat', 'tar']
const publicNetwork = () => Promise.reject(new Error('nothing here is on the Internet'))

/** Examples of user ids that npm, Git for Windows, a directory service and OpenShift use. */
const owners = [95_607, 197_609, 2_000_000, 1_000_660_000]

suite('users with ids above 65535', { skip: needs }, () => {
  let box: TestHost
  let library: Library
  let canMap = false

  before(async () => {
    box = await TestHost.start()
    canMap = await box.mapsOwners()
    const filesDir = join(box.directory, 'in')
    await mkdir(filesDir)
    library = new Library({
      poolDir: join(box.directory, 'runner'),
      filesDir,
      registries: { plainRegistries: [], authFile: undefined, publicNetwork },
      limits: { ...standardLimits, keepFreeBytes: 0 },
      log: silentLog(),
    })
    const files: TarEntry[] = [
      { path: 'bin', type: '5' },
      { path: 'bin/busybox', content: readFileSync(busybox), mode: 0o755 },
      ...applets.map((name): TarEntry => ({ path: `bin/${name}`, type: '2', target: 'busybox' })),
      { path: 'etc', type: '5' },
      { path: 'etc/passwd', content: 'far:x:1000660000:0::/:/bin/sh\n' },
      { path: 'tmp', type: '5', mode: 0o1777 },
      ...owners.flatMap((owner): TarEntry[] => [
        { path: `${owner}`, content: 'of the image\n', uid: owner, gid: owner, mode: 0o640 },
        { path: `dir-${owner}`, type: '5', uid: owner, gid: 0, mode: 0o700 },
      ]),
    ]
    writeLayout(makeImage({ layers: [tarOf(files)], config: { User: '1500000000' } }), join(filesDir, 'large'))
    await library.bring({ image: 'large', source: { kind: 'file', path: 'large' }, maxGiB: 1 })
    await box.close()
    const configOf = (image: string) => library.find(image)?.config
    const rootfsOf = (image: string) => library.rootfsOf(image)
    const largeIdsOf = (image: string) => library.largeIdsOf(image)
    box.use(await openTestHostIn(box.instance, box.directory, { brought: { rootfsOf, configOf, largeIdsOf } }))
  })
  after(() => box?.[Symbol.asyncDispose]())

  const stat = async (sandboxId: string) => {
    const paths = owners.flatMap((owner) => [`/${owner}`, `/dir-${owner}`]).join(' ')
    const { output } = await box.run(sandboxId, `stat -c '%n %u %g' ${paths}`)
    return output.split('\n')
  }
  const expected = owners.flatMap((owner) => [`/${owner} ${owner} ${owner}`, `/dir-${owner} ${owner} 0`])

  test('files of an image that belong to user ids above 65535 can be changed and moved, and get new owners', async (t) => {
    if (!canMap) return t.skip(cannotMapOwners)
    const { sandboxId } = await box.started({ image: 'large', user: 'root' })
    assert.deepEqual(await stat(sandboxId), expected)
    for (const owner of owners) {
      const changes = [
        `echo more >> /${owner} && chown ${owner}:0 /${owner} && cat /${owner}`,
        `mv /${owner} /moved && chown 0 /moved && chown ${owner}:${owner} /moved && mv /moved /${owner}`,
        `echo new > /dir-${owner}/new && chown ${owner} /dir-${owner}/new && stat -c %u /dir-${owner}/new`,
      ]
      const { exitCode, output } = await box.run(sandboxId, changes.join(' && '))
      assert.deepEqual([exitCode, output], [0, `of the image\nmore\n${owner}`])
    }
    assert.deepEqual(await stat(sandboxId), expected)
    const disk = join(box.directory, 'runner/pool/disks', sandboxId, 'upper/2000000')
    assert.equal(statSync(disk).uid, uidBase + 2_000_000)
    await box.host.destroy(sandboxId)
  })

  test('root can unpack files of a user id that the sandbox’s id map has but the image does not use', async (t) => {
    if (!canMap) return t.skip(cannotMapOwners)
    const { sandboxId } = await box.started({ image: 'large', user: 'root' })
    const made =
      'mkdir /tmp/a && echo x > /tmp/a/x && chown -R 95607:197121 /tmp/a && cd /tmp && tar cf a.tar a && rm -r a'
    const { exitCode, output } = await box.run(sandboxId, `${made} && tar xf a.tar && stat -c '%u %g' a/x`)
    assert.deepEqual([exitCode, output], [0, '95607 197121'])
    const refused = await box.run(sandboxId, 'chown 3000000 /tmp/a')
    assert.match(refused.output, /Invalid argument/)
    await box.host.destroy(sandboxId)
  })

  test('commands can run as a user with an id above 65535, by its name, by its number or as USER:GROUP', async (t) => {
    if (!canMap) return t.skip(cannotMapOwners)
    const { sandboxId } = await box.started({ image: 'large', user: '1700000000:1800000000' })
    for (const [user, ids] of [
      ['far', '1000660000 0'],
      ['1500000000', '1500000000 0'],
      ['1700000000:1800000000', '1700000000 1800000000'],
      ['200000', '200000 0'],
    ] as const) {
      const { output } = await box.run(sandboxId, 'echo $(id -u) $(id -g)', user)
      assert.equal(output, ids, user)
    }
    await box.host.destroy(sandboxId)
  })

  test('a stop, a fork, a snapshot and an archive keep the owners of files with user ids above 65535', async (t) => {
    if (!canMap) return t.skip(cannotMapOwners)
    const first = await box.started({ image: 'large', user: 'root' })
    const { sandboxId } = first
    const own = owners.map((owner) => `echo own > /dir-${owner}/own && chown ${owner}:${owner} /dir-${owner}/own`)
    assert.equal((await box.run(sandboxId, own.join(' && '))).exitCode, 0)
    const check = async (id: string) => {
      assert.deepEqual(await stat(id), expected)
      const { output } = await box.run(id, `stat -c %u ${owners.map((owner) => `/dir-${owner}/own`).join(' ')}`)
      assert.deepEqual(output.split('\n').map(Number), owners)
    }
    await box.host.stop({ ...first, generation: 2, target: 'stopped' })
    await box.host.start({ ...first, generation: 3 })
    await check(sandboxId)
    const fork = await box.started({ image: 'large', user: 'root', isNew: true, forkOf: sandboxId })
    await check(fork.sandboxId)
    await box.host.snapshot(sandboxId, 'template')
    const copy = await box.started({ image: 'template', user: 'root' })
    await check(copy.sandboxId)
    const leaving: Assignment = { ...fork, generation: 2, target: 'archived', archive: { id: 'one' } }
    await box.host.stop({ ...fork, generation: 2, target: 'stopped' })
    await box.host.archive(leaving)
    const { id, sha256 } = box.host.get(fork.sandboxId)?.archive ?? assert.fail()
    const { forkOf: _, ...back } = fork
    await box.host.start({ ...back, isNew: false, generation: 3, archive: { id, sha256 } } as Assignment)
    await check(fork.sandboxId)
    for (const each of [first, fork, copy]) await box.host.destroy(each.sandboxId)
  })

  test('on the host, no two running sandboxes have a user id in common', async (t) => {
    if (!canMap) return t.skip(cannotMapOwners)
    const two = [
      await box.started({ image: 'large', user: 'root' }),
      await box.started({ image: 'large', user: 'root' }),
    ]
    const [one = [], other = []] = two.map(({ sandboxId }) =>
      readFileSync(`/proc/${box.pidOf(sandboxId)}/uid_map`, 'utf8')
        .trim()
        .split('\n')
        .map((line) => line.trim().split(/\s+/).map(Number)),
    )
    assert.ok(one.length >= 5)
    for (const [, first = 0, count = 0] of one)
      for (const [, second = 0, more = 0] of other) assert.ok(first + count <= second || second + more <= first)
    for (const { sandboxId } of two) await box.host.destroy(sandboxId)
  })
})
