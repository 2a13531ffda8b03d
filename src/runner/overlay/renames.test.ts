// Tests rename(2) of directories that belong to the image, in real sandboxes. Needs root.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { constants } from 'node:os'
import { join } from 'node:path'
import { after, before, suite, test } from 'node:test'
import { silentLog } from '#src/kit/log.ts'
import type { Assignment } from '#src/wire/runner-link.ts'
import { needsRoot } from '#test/needs-root.ts'
import { Library } from '../images/library.ts'
import { standardLimits } from '../images/limits.ts'
import { makeImage, type TarEntry, tarOf, writeLayout } from '../images/testing/oci-image.ts'
import { uidBase } from '../oci/ids.ts'
import { TestHost } from '../testing/test-host.ts'

const publicNetwork = () => Promise.reject(new Error('nothing here is on the Internet'))

suite('renaming directories of an image in a sandbox', { skip: needsRoot }, () => {
  let box: TestHost
  before(async () => {
    box = await TestHost.start()
    const opt = join(box.directory, 'small/opt')
    const script = [
      'mkdir -p "$1/tool/lib/deep" "$1/other" "$1/secret/inner"',
      'echo one > "$1/tool/one"; echo two > "$1/tool/lib/two"; echo three > "$1/tool/lib/deep/three"',
      'echo hidden > "$1/secret/inner/hidden"',
      'chown -R "$2:$2" "$1"; chmod 700 "$1/secret"',
    ]
    execFileSync('sh', ['-ec', script.join('\n'), 'sh', opt, `${uidBase}`])
  })
  after(() => box?.[Symbol.asyncDispose]())

  const renamed = async (sandboxId: string, from: string, to: string) => {
    assert.equal((await box.run(sandboxId, `probe rename ${from} ${to}`)).output, 'rename 0', `${from} to ${to}`)
  }
  const read = async (sandboxId: string, ...paths: string[]) =>
    (await box.run(sandboxId, `cat ${paths.join(' ')}`)).output.split('\n')

  test('rename(2) moves a directory of the image with its content; a new directory of the old name is empty', async () => {
    const { sandboxId } = await box.started({ user: 'root' })
    await renamed(sandboxId, '/opt/tool', '/opt/tool2')
    assert.deepEqual(await read(sandboxId, '/opt/tool2/one', '/opt/tool2/lib/two'), ['one', 'two'])
    assert.match((await box.run(sandboxId, 'ls /opt/tool')).output, /No such file/)
    await box.run(sandboxId, 'mkdir /opt/tool; echo new > /opt/tool/new')
    assert.equal((await box.run(sandboxId, 'ls /opt/tool')).output, 'new')
    // Renames subdirectories of tool2, which was renamed itself: within tool2, out of tool2, onto the image's empty directory
    // /opt/other, and back.
    await renamed(sandboxId, '/opt/tool2/lib', '/opt/tool2/library')
    await renamed(sandboxId, '/opt/tool2/library/deep', '/deep')
    await renamed(sandboxId, '/deep', '/opt/other')
    assert.deepEqual(await read(sandboxId, '/opt/other/three', '/opt/tool2/library/two'), ['three', 'two'])
    await renamed(sandboxId, '/opt/other', '/opt/tool2/library/deep')
    await box.run(sandboxId, 'rm -r /opt/tool')
    await renamed(sandboxId, '/opt/tool2', '/opt/tool')
    await renamed(sandboxId, '/opt/tool/library', '/opt/tool/lib')
    const { output } = await box.run(
      sandboxId,
      'cd /opt/tool && cat one lib/two lib/deep/three && rm -r /opt/tool && ls /opt',
    )
    assert.deepEqual(output.split('\n'), ['one', 'two', 'three', 'secret'])
    await box.host.destroy(sandboxId)
  })

  test('renamed directories of the image keep their new names after a stop, fork, snapshot and archive', async () => {
    const first = await box.started({ user: 'root' })
    const { sandboxId } = first
    await renamed(sandboxId, '/opt/tool', '/moved')
    await renamed(sandboxId, '/moved/lib/deep', '/moved/deeper')
    await box.run(sandboxId, 'echo more >> /moved/one; echo own > /moved/deeper/own')
    const check = async (id: string) => {
      const found = await read(id, '/moved/one', '/moved/lib/two', '/moved/deeper/three', '/moved/deeper/own')
      assert.deepEqual(found, ['one', 'more', 'two', 'three', 'own'])
      assert.deepEqual((await box.run(id, 'ls /opt /moved/lib')).output.split('\n'), [
        ...['/moved/lib:', 'two', '', '/opt:', 'other', 'secret'],
      ])
    }
    await check(sandboxId)
    await box.host.stop({ ...first, generation: 2, target: 'stopped' })
    await box.host.start({ ...first, generation: 3 })
    await check(sandboxId)
    const fork = await box.started({ user: 'root', isNew: true, forkOf: sandboxId })
    await check(fork.sandboxId)
    await box.host.snapshot(sandboxId, 'template')
    const copy = await box.started({ image: 'template', user: 'root' })
    await check(copy.sandboxId)
    await box.host.stop({ ...fork, generation: 2, target: 'stopped' })
    await box.host.archive({ ...fork, generation: 2, target: 'archived', archive: { id: 'one' } })
    const { id, sha256 } = box.host.get(fork.sandboxId)?.archive ?? assert.fail()
    const { forkOf: _, ...back } = fork
    await box.host.start({ ...back, isNew: false, generation: 3, archive: { id, sha256 } } as Assignment)
    await check(fork.sandboxId)
    // After a restore from the archive, the renamed directory can be renamed again.
    await renamed(fork.sandboxId, '/moved', '/again')
    assert.deepEqual(await read(fork.sandboxId, '/again/deeper/three'), ['three'])
    for (const each of [first, fork, copy]) await box.host.destroy(each.sandboxId)
  })

  test('root in a sandbox cannot make a path show the files of another path by attributes such as `redirect`', async () => {
    const assignment = await box.started({ user: 'root' })
    const { sandboxId } = assignment
    await box.run(sandboxId, 'mkdir -m 755 /trap /trap2; true > /file')
    const attribute = async (path: string, name: string, value: string) =>
      (await box.run(sandboxId, `probe attribute ${path} ${name} ${value}`)).output
    for (const [path, name] of [
      ['/trap', 'trusted.overlay.redirect'],
      ['/file', 'trusted.overlay.redirect'],
      ['/file', 'trusted.overlay.metacopy'],
      ['/trap', 'trusted.overlay.overlay.redirect'],
    ] as const)
      assert.equal(await attribute(path, name, '/opt/secret/inner'), `attribute ${constants.errno.EPERM}`)
    assert.equal(await attribute('/trap', 'user.overlay.redirect', '/opt/secret/inner'), 'attribute 0')
    assert.equal(await attribute('/file', 'user.overlay.metacopy', 'x'), 'attribute 0')
    await box.host.stop({ ...assignment, generation: 2, target: 'stopped' })
    await box.host.start({ ...assignment, generation: 3 })
    assert.deepEqual((await box.run(sandboxId, 'ls /trap /trap2; cat /file')).output.split('\n'), [
      ...['/trap:', '', '/trap2:'],
    ])
    await box.host.destroy(sandboxId)
  })

  test('forged attributes (`redirect`) in an image cannot make a path show the files of another path', {
    skip: !existsSync('/bin/busybox') && 'needs busybox-static',
  }, async () => {
    const target = Buffer.from('/secret')
    const forged = (path: string): TarEntry => ({
      path,
      type: '5',
      attributes: { 'trusted.overlay.redirect': target, 'user.overlay.redirect': target },
    })
    const files: TarEntry[] = [
      { path: 'bin', type: '5' },
      { path: 'bin/busybox', content: readFileSync('/bin/busybox'), mode: 0o755 },
      ...['sh', 'ls'].map((name): TarEntry => ({ path: `bin/${name}`, type: '2', target: 'busybox' })),
      { path: 'secret', type: '5' },
      { path: 'secret/hidden', content: 'hidden' },
    ]
    writeLayout(
      makeImage({ layers: [tarOf([...files, forged('trap')]), tarOf([forged('trap'), forged('trap2')])] }),
      join(box.directory, 'in/forged'),
    )
    const library = new Library({
      poolDir: join(box.directory, 'library'),
      filesDir: join(box.directory, 'in'),
      registries: { plainRegistries: [], authFile: undefined, publicNetwork },
      limits: { ...standardLimits, keepFreeBytes: 0 },
      log: silentLog(),
    })
    await library.bring({ image: 'forged', source: { kind: 'file', path: 'forged' }, maxGiB: 1 })
    const rootfs = library.rootfsOf('forged') ?? assert.fail()
    execFileSync('mv', [rootfs, join(box.directory, 'forged')])
    const { sandboxId } = await box.started({ image: 'forged', user: 'root' })
    assert.equal((await box.run(sandboxId, 'ls /trap /trap2')).output, '/trap:\n\n/trap2:')
    await box.host.destroy(sandboxId)
  })
})
