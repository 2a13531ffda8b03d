import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { suite, test } from 'node:test'
import { needsRoot } from '#test/needs-root.ts'
import { halfFilesOf } from '../files/testing/half-files.ts'
import { type UnpackRecord, unpackRecord } from './agent.ts'
import { until } from './testing/native-agent.ts'
import { refused, startWithFiles } from './testing/with-files.ts'

suite('writing files through the agent', () => {
  test('`write` makes a new file with its parent directories and mode; an existing file keeps its mode', async () => {
    await using box = await startWithFiles()
    await box.files.write(box.at('new', 'er', 'file'), [Buffer.from('one, '), Buffer.from('two')], {
      makeParents: true,
      mode: 0o600,
    })
    assert.equal(readFileSync(box.at('new', 'er', 'file'), 'utf8'), 'one, two')
    await box.files.write(box.at('new', 'er', 'file'), [])
    const { mode, size } = statSync(box.at('new', 'er', 'file'))
    assert.deepEqual([mode & 0o7777, size], [0o600, 0])
    await box.files.write(box.at('default'), [Buffer.from('x')])
    assert.equal(statSync(box.at('default')).mode & 0o7777, 0o644)
    await assert.rejects(box.files.write(box.at('no', 'parent'), []), refused('ENOENT'))
  })

  test('`write` writes a file of 60 MiB completely', async () => {
    await using box = await startWithFiles()
    const piece = Buffer.alloc(3 * 1024 * 1024, 'piece ')
    await box.files.write(box.at('large'), Array(20).fill(piece))
    const wanted = createHash('sha256')
    for (let i = 0; i < 20; i++) wanted.update(piece)
    assert.equal(
      createHash('sha256')
        .update(readFileSync(box.at('large')))
        .digest('hex'),
      wanted.digest('hex'),
    )
  })

  test('a `write` whose contents end too early leaves the old file unchanged, and leaves no temporary file', async () => {
    await using box = await startWithFiles()
    const before = readdirSync(box.at()).sort()
    const brokenOff = async function* () {
      yield Buffer.alloc(300_000)
      await until(() => halfFilesOf(box.native).length > 0, 'the new file being received')
      throw new Error('the client is gone')
    }
    await assert.rejects(box.files.write(box.at('plain'), brokenOff()), /the client is gone/)
    await until(() => halfFilesOf(box.native).length === 0, 'the new file removed')
    assert.deepEqual(readdirSync(box.at()).sort(), before)
    assert.equal(readFileSync(box.at('plain'), 'utf8'), 'plain text\n')
  })

  test('an agent that ends during a `write` leaves no unfinished file', async () => {
    await using box = await startWithFiles()
    const endless = async function* () {
      yield Buffer.alloc(1000)
      await until(() => halfFilesOf(box.native).length > 0, 'the new file')
      void box.native.agent.shutdown(5000)
      for (;;) {
        await new Promise((resolve) => setTimeout(resolve, 10))
        yield Buffer.alloc(1000)
      }
    }
    await assert.rejects(box.files.write(box.at('plain'), endless()), { name: 'AgentGone' })
    await until(() => halfFilesOf(box.native).length === 0, 'the new file removed')
    assert.equal(readFileSync(box.at('plain'), 'utf8'), 'plain text\n')
  })

  test('`write` to a path follows a symbolic link, and refuses a fifo, a device or a directory immediately', async () => {
    await using box = await startWithFiles()
    await box.files.write(box.at('link'), [Buffer.from('through')])
    assert.ok(lstatSync(box.at('link')).isSymbolicLink())
    assert.equal(readFileSync(box.at('plain'), 'utf8'), 'through')
    await assert.rejects(box.files.write(box.at('fifo'), []), refused('EINVAL'))
    await assert.rejects(box.files.write('/dev/null', []), refused('EINVAL'))
    await assert.rejects(box.files.write(box.at('deep'), []), refused('EISDIR'))
    await assert.rejects(box.files.write(`${box.at('slash')}/`, []), refused('EISDIR'))
    await assert.rejects(box.files.write('/', []), refused('EISDIR'))
    await assert.rejects(box.files.write('', []), refused('ENOENT'))
  })
})

suite('writing a file in place, if a rename cannot replace it', { skip: needsRoot }, () => {
  const mounted = (...what: string[]) => {
    execFileSync('mount', what)
    return { [Symbol.dispose]: () => execFileSync('umount', ['--lazy', what.at(-1)!]) }
  }

  /** Makes a file that everybody may write to. Only root may change the file's directory. `before`: the names in the directory. */
  const withClosed = async () => {
    const box = await startWithFiles()
    for (const directory of [box.native.directory, box.at(), box.at('deep')]) chmodSync(directory, 0o755)
    const path = box.at('deep', 'file')
    writeFileSync(path, 'what was there')
    chmodSync(path, 0o666)
    const nobody = box.native.agent.files('nobody')
    return { ...box, path, nobody, before: readdirSync(box.at('deep')).sort() }
  }

  const brokenOff = async function* () {
    yield Buffer.alloc(300_000)
    throw new Error('the client is gone')
  }

  test('`write` to a mounted file replaces its contents only after all of the new contents have arrived', async () => {
    await using box = await startWithFiles()
    const before = readdirSync(box.at())
    writeFileSync(box.at('deep', 'source'), 'the file that is mounted there\n', { mode: 0o640 })
    using _ = mounted('--bind', box.at('deep', 'source'), box.at('plain'))
    const { ino } = statSync(box.at('plain'))
    await assert.rejects(box.files.write(box.at('plain'), brokenOff()), /the client is gone/)
    assert.equal(readFileSync(box.at('plain'), 'utf8'), 'the file that is mounted there\n')
    for (const contents of ['short', 'x'.repeat(700_000), '']) {
      await box.files.write(box.at('link'), [Buffer.from(contents)])
      assert.equal(readFileSync(box.at('deep', 'source'), 'utf8'), contents)
    }
    const { mode, ino: inoAfter } = statSync(box.at('plain'))
    assert.deepEqual([mode & 0o7777, inoAfter], [0o640, ino])
    await box.files.write(box.at('plain'), [Buffer.from('x')], { mode: 0o600 })
    assert.equal(statSync(box.at('plain')).mode & 0o7777, 0o600)
    assert.deepEqual(readdirSync(box.at()), before)
  })

  test('`write` keeps the inode of a writable file in a directory that the user may not write to', async () => {
    await using box = await withClosed()
    const { ino } = statSync(box.path)
    await assert.rejects(box.nobody.write(box.path, brokenOff()), /the client is gone/)
    assert.equal(readFileSync(box.path, 'utf8'), 'what was there')
    for (const contents of [`${'x'.repeat(500_000)}end`, 'short', '']) {
      await box.nobody.write(box.path, [Buffer.from(contents.slice(0, 2)), Buffer.from(contents.slice(2))])
      assert.equal(readFileSync(box.path, 'utf8'), contents)
    }
    const after = statSync(box.path)
    assert.deepEqual([after.ino, after.uid, after.mode & 0o7777], [ino, 0, 0o666])
    assert.deepEqual(readdirSync(box.at('deep')).sort(), box.before)
  })

  test('`write` to a file that the user may not replace fails with EPERM or EACCES, and the file stays', async () => {
    await using box = await withClosed()
    const one = [Buffer.from('x')]
    await assert.rejects(box.nobody.write(box.path, one, { mode: 0o777 }), refused('EPERM'))
    await assert.rejects(box.nobody.write(box.at('deep', 'new'), one), refused('EACCES'))
    // Another user may have made a file in a sticky directory such as /tmp to read what others write to it. So `write` must fail.
    chmodSync(box.at('deep'), 0o1777)
    await assert.rejects(box.nobody.write(box.path, one), refused('EPERM'))
    for (const mode of [0o1777, 0o755]) {
      chmodSync(box.at('deep'), mode)
      chmodSync(box.path, 0o644)
      await assert.rejects(box.nobody.write(box.path, one), refused('EACCES'))
    }
    assert.equal(readFileSync(box.path, 'utf8'), 'what was there')
    await until(() => readdirSync(box.at('deep')).length === box.before.length, 'nothing beside it')
  })

  test('a link or fifo that replaces the file during a `write` is not followed, and does not block the write', async () => {
    await using box = await withClosed()
    writeFileSync(box.at('victim'), 'of nobody else')
    chmodSync(box.at('victim'), 0o666)
    const swapping = (swap: () => void) =>
      async function* () {
        yield Buffer.from('new ')
        rmSync(box.path)
        swap()
        yield Buffer.from('contents')
      }
    const swaps = [
      [() => symlinkSync('../victim', box.path), 'ELOOP'],
      [() => execFileSync('mkfifo', ['-m', '666', box.path]), 'EINVAL'],
      [() => mkdirSync(box.path), 'EISDIR'],
      [() => writeFileSync(box.path, 'not for nobody', { mode: 0o644 }), 'EACCES'],
      [() => {}, 'ENOENT'],
    ] as const
    for (const [swap, errno] of swaps) {
      await assert.rejects(box.nobody.write(box.path, swapping(swap)()), refused(errno))
      rmSync(box.path, { recursive: true, force: true })
      writeFileSync(box.path, '')
      chmodSync(box.path, 0o666)
    }
    assert.equal(readFileSync(box.at('victim'), 'utf8'), 'of nobody else')
  })

  test('`write` to a full disk fails and leaves the old file unchanged', async () => {
    await using box = await withClosed()
    using _ = mounted('-t', 'tmpfs', '-o', 'size=256k,mode=755', 'none', box.at('deep'))
    writeFileSync(box.path, 'what was there')
    chmodSync(box.path, 0o666)
    await assert.rejects(box.nobody.write(box.path, [Buffer.alloc(400_000)]), refused('ENOSPC'))
    assert.equal(readFileSync(box.path, 'utf8'), 'what was there')
    assert.equal(statSync(box.path).blocks, 8)
    await box.nobody.write(box.path, [Buffer.alloc(200_000, 'x')])
    assert.equal(readFileSync(box.path, 'utf8'), 'x'.repeat(200_000))
  })
})

suite('unpacking a stream of files through the agent', { skip: needsRoot }, () => {
  const record = (more: Omit<UnpackRecord, 'path'> & { path: string; to?: string }, contents = '') =>
    Buffer.concat([
      unpackRecord({
        ...more,
        path: Buffer.from(more.path),
        target: Buffer.from(more.to ?? ''),
        size: Buffer.byteLength(contents),
      }),
      Buffer.from(contents),
    ])

  test('`unpack` makes files, directories and links from a stream, wherever the stream is cut into chunks', async () => {
    await using box = await startWithFiles()
    const large = 'x'.repeat(700_000)
    const stream = Buffer.concat([
      record({ type: 'directory', path: box.at('made'), mode: 0o710 }),
      record({ type: 'directory', path: box.at('deep'), mode: 0o700 }),
      record(
        { type: 'file', path: box.at('made/far/away'), mode: 0o4755, uid: 5, gid: 6, modifiedSeconds: 1000 },
        'hello',
      ),
      record({ type: 'file', path: box.at('large') }, large),
      record({ type: 'file', path: box.at('empty'), mode: 0o600 }),
      record({ type: 'link', path: box.at('made/link'), to: '../nowhere' }),
      record({ type: 'hard link', path: box.at('made/other'), to: box.at('made/far/away') }),
      // The path `link` already exists, as a symbolic link. The new file replaces the link, and the link is not followed.
      record({ type: 'file', path: box.at('link') }, 'new'),
      record({ type: 'link', path: box.at('fifo'), to: 'plain' }),
    ])
    const pieces = [1, 36, 37, 38, 500, 70_000].map((at, index, all) => stream.subarray(all[index - 1] ?? 0, at))
    await box.files.unpack([...pieces, stream.subarray(70_000)], { owner: '7', group: '8' })
    const [made, far] = [statSync(box.at('made')), statSync(box.at('made/far/away'))]
    assert.deepEqual([made.mode & 0o7777, made.uid, made.gid], [0o710, 7, 8])
    assert.deepEqual([far.mode & 0o7777, far.uid, far.gid, far.mtimeMs, far.nlink], [0o4755, 5, 6, 1_000_000, 2])
    assert.notEqual(statSync(box.at('deep')).mode & 0o777, 0o700, 'a directory that is there stays as it is')
    assert.equal(readFileSync(box.at('large'), 'utf8'), large)
    assert.equal(lstatSync(box.at('made/link')).isSymbolicLink(), true)
    assert.equal(lstatSync(box.at('link')).isFile(), true)
    assert.equal(readFileSync(box.at('plain'), 'utf8'), 'plain text\n')
  })

  test('`unpack` refuses unknown owners, damaged records, and a file where a directory is, or the reverse', async () => {
    await using box = await startWithFiles()
    const one = record({ type: 'file', path: box.at('x') }, 'x')
    await assert.rejects(box.files.unpack([record({ type: 'file', path: box.at('deep') })]), refused('EISDIR'))
    await assert.rejects(box.files.unpack([record({ type: 'file', path: box.at('plain/x') })]), refused('ENOTDIR'))
    await assert.rejects(box.files.unpack([record({ type: 'directory', path: box.at('plain') })]), refused('ENOTDIR'))
    await assert.rejects(box.files.unpack([one], { owner: 'nobody-here' }), { name: 'AgentRefused', stage: 'user' })
    const protocol = { name: 'AgentRefused', stage: 'protocol' }
    const long = record({ type: 'file', path: `/${'x'.repeat(5000)}` })
    await assert.rejects(box.files.unpack([long]), refused('ENAMETOOLONG'))
    const relative = record({ type: 'file', path: 'relative' })
    const badType = Buffer.from(one).fill(9, 0, 1)
    const withNul = record({ type: 'file', path: `${box.at('x')}\0y` })
    const withContents = Buffer.concat([record({ type: 'link', path: box.at('l'), to: 'x' }, 'contents')])
    for (const bad of [relative, badType, withNul, withContents, one.subarray(0, 20), one.subarray(0, -1)])
      await assert.rejects(box.files.unpack([bad]), protocol)
    // The changed byte is never in the path of the test's directory, because `unpack` could then make files elsewhere, which
    // nothing would delete.
    const [from, size] = [one.indexOf(box.native.directory), box.native.directory.length + 1]
    assert.ok(from > 0)
    for (let round = 0; round < 50; round++) {
      const noise = Buffer.from(one)
      const at = round % (noise.length - size)
      noise[at < from ? at : at + size]! ^= 0xff
      await box.files.unpack([noise]).catch(() => {})
    }
    await box.files.unpack([one])
    assert.equal(readFileSync(box.at('x'), 'utf8'), 'x')
  })
})
