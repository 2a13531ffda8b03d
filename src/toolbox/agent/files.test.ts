import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import fc from 'fast-check'
import { needsRoot } from '#test/needs-root.ts'
import { encodeFrame, FieldWriter, kinds } from './frames.ts'
import { until } from './testing/native-agent.ts'
import { provoke } from './testing/provoke.ts'
import { all, content, me, refused, startWithFiles } from './testing/with-files.ts'

/** Skips a test without /dev/shm: only a file system in memory allows a file of nearly 2^63 bytes. */
const inMemory = { skip: !existsSync('/dev/shm') && 'needs /dev/shm' }
const loopbackMtu = '/sys/class/net/lo/mtu'
const sizeless = { skip: !existsSync('/proc/kallsyms') && 'needs /proc/kallsyms' }

suite('describing and listing files through the agent', () => {
  test('`stat` of a symbolic link describes the link by default, and its target with `followLink`', async () => {
    await using box = await startWithFiles()
    chmodSync(box.at('plain'), 0o4751)
    const entry = await box.files.stat(box.at('plain'))
    const wanted = lstatSync(box.at('plain'))
    assert.deepEqual(
      [entry.type, entry.size, entry.mode, entry.uid, entry.owner, entry.target],
      ['file', 11, 0o4751, wanted.uid, me, null],
    )
    assert.equal(entry.modifiedAt.getTime(), Math.trunc(wanted.mtimeMs))
    const link = await box.files.stat(box.at('link'))
    assert.deepEqual([link.type, link.target?.toString()], ['symlink', 'plain'])
    assert.equal((await box.files.stat(box.at('link'), { followLink: true })).type, 'file')
    await assert.rejects(box.files.stat(box.at('dangling'), { followLink: true }), refused('ENOENT'))
    await assert.rejects(box.files.stat(''), refused('ENOENT'))
  })

  test(
    '`list` lists all files of a directory, even files with a size or time that JavaScript cannot hold',
    inMemory,
    async () => {
      await using box = await startWithFiles()
      const directory = mkdtempSync('/dev/shm/alcove-far-')
      using _ = { [Symbol.dispose]: () => rmSync(directory, { recursive: true }) }
      const at = (name: string) => join(directory, name)
      for (const name of ['plain', 'large', 'late', 'early']) writeFileSync(at(name), '')
      execFileSync('truncate', ['-s', '9223372036854771711', at('large')])
      execFileSync('touch', ['-d', '@9223372036854775807', at('late')])
      execFileSync('touch', ['-d', '@-9223372036854775807', at('early')])
      const listed = await all(box.files.list(directory))
      assert.deepEqual([...listed.keys()].sort(), ['early', 'large', 'late', 'plain'])
      assert.equal(listed.get('large')?.size, Number.MAX_SAFE_INTEGER)
      assert.equal(listed.get('late')?.modifiedAt.toISOString(), '+275760-09-13T00:00:00.000Z')
      assert.equal(listed.get('early')?.modifiedAt.toISOString(), '-271821-04-20T00:00:00.000Z')
      const piece = await box.files.read(at('large'), { offset: 2 ** 53 - 20, length: 10 })
      assert.deepEqual([piece.size, await content(piece)], [Number.MAX_SAFE_INTEGER, '\0'.repeat(10)])
    },
  )

  test('`list` of a directory lists subdirectories to the requested depth, and follows no symbolic link', async () => {
    await using box = await startWithFiles()
    const flat = await all(box.files.list(box.at()))
    assert.deepEqual([...flat.keys()].sort(), ['dangling', 'deep', 'fifo', 'link', 'link-to-directory', 'plain'])
    assert.deepEqual([flat.get('fifo')?.type, flat.get('link-to-directory')?.target?.toString()], ['fifo', '/etc'])
    const two = await all(box.files.list(box.at(), 2))
    assert.ok(two.has('deep/deeper') && !two.has('deep/deeper/file'))
    const deep = await all(box.files.list(box.at(), 64))
    assert.ok(deep.has('deep/deeper/file') && deep.has('deep/deeper/deepest'))
    assert.ok(![...deep.keys()].some((path) => path.startsWith('link-to-directory/')))
    await assert.rejects(all(box.files.list(box.at('plain'))), refused('ENOTDIR'))
    await assert.rejects(all(box.files.list(box.at('fifo'))), refused('ENOTDIR'))
  })

  test('file names that are not UTF-8 pass unchanged in requests to the agent and in its answers', async () => {
    await using box = await startWithFiles()
    const name = Buffer.concat([Buffer.from(`${box.at('odd')}/`), Buffer.of(0xff, 0xfe, 0x0a, 0x22)])
    await box.files.write(name, [Buffer.from('odd')], { makeParents: true })
    const [entry] = [...(await all(box.files.list(box.at('odd')))).values()]
    assert.deepEqual(entry?.path, Buffer.of(0xff, 0xfe, 0x0a, 0x22))
    assert.equal(await content(await box.files.read(name)), 'odd')
    await box.files.remove(name)
    assert.deepEqual(readdirSync(box.at('odd')), [])
  })

  test('`list` returns a directory of 5000 files; a reader that stops early leaves no descriptor open', async () => {
    await using box = await startWithFiles()
    mkdirSync(box.at('many'))
    for (let i = 0; i < 5000; i++) writeFileSync(box.at('many', `file-${i}`), '')
    assert.equal((await all(box.files.list(box.at('many')))).size, 5000)
    const before = box.native.openDescriptors
    for await (const _ of box.files.list(box.at('many'))) break
    await box.native.downTo(before)
  })
})

suite('reading files through the agent', () => {
  test('`read` returns a whole file or a range of it, follows links, and returns nothing past the end', async () => {
    await using box = await startWithFiles()
    const whole = await box.files.read(box.at('plain'))
    assert.deepEqual([whole.size, whole.length, await content(whole)], [11, 11, 'plain text\n'])
    assert.equal(await content(await box.files.read(box.at('plain'), { offset: 6, length: 4 })), 'text')
    const past = await box.files.read(box.at('plain'), { offset: 100 })
    assert.deepEqual([past.size, past.length, await content(past)], [11, 0, ''])
    assert.equal(await content(await box.files.read(box.at('link'))), 'plain text\n')
    assert.match(await content(await box.files.read('/proc/self/status')), /^Name:\talcove-agent/)
  })

  test('`read` of a file in sysfs, or of a file that was cut short, reports the number of bytes really read', async () => {
    await using box = await startWithFiles()
    const mtu = readFileSync(loopbackMtu, 'utf8')
    assert.notEqual(statSync(loopbackMtu).size, mtu.length)
    const whole = await box.files.read(loopbackMtu)
    assert.deepEqual([whole.size, whole.length, await content(whole)], [mtu.length, mtu.length, mtu])
    const part = await box.files.read(loopbackMtu, { offset: 1, length: 100 })
    assert.deepEqual([part.size, part.length, await content(part)], [mtu.length, mtu.length - 1, mtu.slice(1)])

    const script = `cd ${box.at()}; while :; do : > cut; printf %4000s x > cut; done`
    const cutting = await box.native.agent.exec({
      ...{ argv: ['/bin/sh', '-c', script], env: {}, user: me, mergeOutput: true },
    })
    await until(() => existsSync(box.at('cut')), 'the file that is cut')
    for (let i = 0; i < 200; i++) await content(await box.files.read(box.at('cut')))
    cutting.close()
  })

  test(
    '`read` of a file whose size is reported as 0 returns up to 1 MiB, and refuses a larger file',
    sizeless,
    async () => {
      await using box = await startWithFiles()
      // The agent first reads 64 KiB of a file. The file smaps is larger than that, but reports the size 0.
      const maps = await box.files.read(`/proc/${process.pid}/smaps`)
      assert.ok(maps.size > 64 * 1024 && maps.length === maps.size, String(maps.size))
      assert.match(await content(maps), /VmFlags: [^\n]*\n$/)
      for (const range of [{}, { length: 0 }, { offset: 10, length: 10 }]) {
        await assert.rejects(box.files.read('/proc/kallsyms', range), refused('EFBIG'))
      }
    },
  )

  test('`read` of a fifo, device, socket, directory or missing path is refused without waiting', async () => {
    await using box = await startWithFiles()
    const server = createServer().listen(box.at('socket'))
    await once(server, 'listening')
    try {
      await assert.rejects(box.files.read(box.at('socket')), refused('EINVAL'))
    } finally {
      server.close()
    }
    await assert.rejects(box.files.read(box.at('fifo')), refused('EINVAL'))
    await assert.rejects(box.files.read('/dev/zero'), refused('EINVAL'))
    await assert.rejects(box.files.read(box.at('deep')), refused('EISDIR'))
    await assert.rejects(box.files.read(box.at('missing')), refused('ENOENT'))
    await assert.rejects(box.files.read(box.at('dangling')), refused('ENOENT'))
    await assert.rejects(box.files.read(box.at('plain', 'below')), refused('ENOTDIR'))
    await assert.rejects(box.files.read('nul\0byte'), TypeError)
  })

  test('`read` of a file that becomes shorter while it is read ends with an error, not as a complete file', async () => {
    await using box = await startWithFiles()
    const size = 64 * 1024 * 1024
    writeFileSync(box.at('large'), '')
    truncateSync(box.at('large'), size)
    const { stream, length } = await box.files.read(box.at('large'))
    assert.equal(length, size)
    await once(stream, 'readable')
    truncateSync(box.at('large'), 1000)
    await assert.rejects(stream.toArray(), { name: 'AgentGone' })
  })

  test('the agent’s process that reads a file ends when the caller closes the stream', async () => {
    await using box = await startWithFiles()
    writeFileSync(box.at('large'), '')
    truncateSync(box.at('large'), 64 * 1024 * 1024)
    const children = (): string =>
      readFileSync(`/proc/${box.native.pid}/task/${box.native.pid}/children`, 'utf8').trim()
    const { stream } = await box.files.read(box.at('large'))
    await once(stream, 'readable')
    assert.notEqual(children(), '')
    stream.destroy()
    await until(() => children() === '', 'no process left')
  })

  test('`read` of a file returns 100 MiB completely', async () => {
    await using box = await startWithFiles()
    const bytes = Buffer.alloc(100 * 1024 * 1024, 'the contents of a large file ')
    writeFileSync(box.at('large'), bytes)
    const sum = createHash('sha256')
    for await (const chunk of (await box.files.read(box.at('large'))).stream) sum.update(chunk as Buffer)
    assert.equal(sum.digest('hex'), createHash('sha256').update(bytes).digest('hex'))
  })
})

suite('changing files through the agent', () => {
  test('`mkdir` makes missing parents, and returns false if the directory already exists', async () => {
    await using box = await startWithFiles()
    assert.equal(await box.files.mkdir(box.at('a', 'b', 'c'), 0o700), true)
    assert.equal(statSync(box.at('a', 'b', 'c')).mode & 0o7777, 0o700)
    assert.equal(await box.files.mkdir(`${box.at('a', 'b', 'c')}//`), false)
    await assert.rejects(box.files.mkdir(box.at('plain')), refused('ENOTDIR'))
    await assert.rejects(box.files.mkdir(box.at('plain', 'below')), refused('ENOTDIR'))
  })

  test('`move` of a file replaces an existing file only with `overwrite`', async () => {
    await using box = await startWithFiles()
    await box.files.move(box.at('plain'), box.at('moved'))
    assert.ok(!existsSync(box.at('plain')))
    writeFileSync(box.at('other'), 'other')
    await assert.rejects(box.files.move(box.at('other'), box.at('moved')), refused('EEXIST'))
    await assert.rejects(box.files.move(box.at('missing'), box.at('x')), refused('ENOENT'))
    await box.files.move(box.at('other'), box.at('moved'), { overwrite: true })
    assert.equal(readFileSync(box.at('moved'), 'utf8'), 'other')
  })

  test('`remove` of a path deletes a link but not its target, a directory only if recursive, and never `/`', async () => {
    await using box = await startWithFiles()
    await assert.rejects(box.files.remove(box.at('deep')), refused('EISDIR'))
    symlinkSync(box.at('plain'), box.at('deep', 'outward'))
    symlinkSync(box.at('..'), box.at('deep', 'outward-directory'))
    await box.files.remove(`${box.at('deep')}/`, { recursive: true })
    assert.ok(!existsSync(box.at('deep')))
    assert.equal(readFileSync(box.at('plain'), 'utf8'), 'plain text\n')
    await box.files.remove(box.at('link-to-directory'), { recursive: true })
    assert.ok(existsSync('/etc/passwd'))
    await box.files.remove(box.at('fifo'))
    await assert.rejects(box.files.remove(box.at('fifo')), refused('ENOENT'))
    for (const root of ['/', '/./', '/etc/..']) {
      await assert.rejects(box.files.remove(root), refused('EBUSY'))
    }
  })

  test('`remove` of a directory deletes nothing outside it, even if a process keeps adding links inside', async () => {
    await using box = await startWithFiles()
    mkdirSync(box.at('victim'))
    writeFileSync(box.at('victim', 'keep'), 'keep')
    const script = `cd ${box.at()}; while :; do mkdir -p race/d; mv -T race/d race/e; ln -s ../victim race/d; rm -rf race/e; rm -f race/d; done`
    const racing = await box.native.agent.exec({
      ...{ argv: ['/bin/sh', '-c', script], env: {}, user: me, mergeOutput: true },
    })
    for (let i = 0; i < 150; i++) await box.files.remove(box.at('race'), { recursive: true }).catch(() => {})
    racing.close()
    assert.equal(readFileSync(box.at('victim', 'keep'), 'utf8'), 'keep')
  })

  test('`setPermissions` sets a file’s mode, owner and group, by name or number', { skip: needsRoot }, async () => {
    await using box = await startWithFiles()
    await box.files.setPermissions(box.at('plain'), { mode: 0o4755, owner: 'nobody', group: '4242' })
    const { mode, uid, gid } = statSync(box.at('plain'))
    assert.deepEqual([mode & 0o7777, uid, gid], [0o4755, 65534, 4242])
    await assert.rejects(box.files.setPermissions(box.at('plain'), { owner: 'no-such-user' }), refused('EINVAL'))
    await assert.rejects(box.files.setPermissions(box.at('missing'), {}), refused('ENOENT'))
    const entry = await box.files.stat(box.at('plain'))
    assert.deepEqual([entry.owner, entry.group, entry.gid], ['nobody', '', 4242])
  })
})

suite('permissions of file calls through the agent', () => {
  test('a file call has the permissions of the user that it names, not the permissions of the agent', {
    skip: needsRoot,
  }, async () => {
    await using box = await startWithFiles()
    chmodSync(box.native.directory, 0o755)
    chmodSync(box.at(), 0o755)
    chmodSync(box.at('plain'), 0o600)
    mkdirSync(box.at('open'))
    chmodSync(box.at('open'), 0o777)
    symlinkSync('../plain', box.at('open', 'to-plain'))
    const nobody = box.native.agent.files('nobody')
    for (const path of [box.at('plain'), box.at('link'), box.at('open', 'to-plain')]) {
      await assert.rejects(nobody.read(path), refused('EACCES'))
      await assert.rejects(nobody.write(path, []), refused('EACCES'))
    }
    await assert.rejects(nobody.write(box.at('new'), []), refused('EACCES'))
    await assert.rejects(nobody.mkdir(box.at('new')), refused('EACCES'))
    await assert.rejects(nobody.remove(box.at('plain')), refused('EACCES'))
    await assert.rejects(nobody.move(box.at('plain'), box.at('open', 'taken')), refused('EACCES'))
    await assert.rejects(nobody.setPermissions(box.at('plain'), { mode: 0o777 }), refused('EPERM'))
    await assert.rejects(nobody.read('/proc/1/environ'), refused('EACCES'))
    await nobody.write(box.at('open', 'mine'), [Buffer.from('mine')])
    assert.equal(statSync(box.at('open', 'mine')).uid, 65534)
    // Mode 0444 forbids even the owner to write, so `write` must fail, although the owner could replace the file.
    await nobody.setPermissions(box.at('open', 'mine'), { mode: 0o444 })
    await assert.rejects(nobody.write(box.at('open', 'mine'), []), refused('EACCES'))
    await assert.rejects(box.native.agent.files('no-such-user').stat('/'), { stage: 'user', errno: 'ENOENT' })
  })

  test('random requests about files never crash the agent', async () => {
    await using box = await startWithFiles()
    const before = box.native.openDescriptors
    const kind = fc.constantFrom(kinds.fileStat, kinds.fileList, kinds.fileRead, kinds.fileWrite, kinds.fileMkdir)
    const path = fc.constantFrom(box.at('fuzz'), box.at('fifo'), '', box.at('plain'))
    const request = fc
      .tuple(kind, path, fc.uint8Array({ maxLength: 24, size: 'max' }))
      .map(([kind, path, rest]) =>
        encodeFrame(kind, Buffer.concat([new FieldWriter().string(me).string(path).done(), rest])),
      )
    await fc.assert(
      fc.asyncProperty(request, async (sent) => {
        await provoke(box.native.socketPath, [sent], true)
      }),
      { numRuns: 150 },
    )
    await box.native.downTo(before)
    assert.equal(readFileSync(box.at('plain'), 'utf8'), 'plain text\n')
  })
})
