import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import {
  chmodSync,
  chownSync,
  closeSync,
  copyFileSync,
  existsSync,
  fstatSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  watch,
  writeFileSync,
} from 'node:fs'
import { suite, test } from 'node:test'
import { needsRoot } from '#test/needs-root.ts'
import { until } from '../agent/testing/native-agent.ts'
import { FilesRoom, refusal } from './testing/files-room.ts'
import { halfFilesOf } from './testing/half-files.ts'

const sum = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')
const halfFiles = (room: FilesRoom) => halfFilesOf(room.native)
const formOf = (fields: readonly (readonly [string, string | Blob])[]) => {
  const form = new FormData()
  for (const [name, value] of fields) form.append(name, value)
  return form
}

suite('POST /files/upload-v2, POST /files/upload', () => {
  test('POST /files/upload-v2 answers 200 for a raw body of any type, and makes missing parent directories', async () => {
    await using room = await FilesRoom.start()
    for (const type of ['application/octet-stream', 'application/json', 'text/plain']) {
      assert.deepEqual(refusal(await room.upload(room.at('a', 'b', 'raw'), `{ ${type}`, type)), [200, undefined])
      assert.equal(readFileSync(room.at('a', 'b', 'raw'), 'utf8'), `{ ${type}`)
    }
    const bare = room.begin('POST', '/upload', { path: room.at('bare') })
    assert.equal((await room.settle(bare.end('no type at all'))).status, 200)
    assert.equal(readFileSync(room.at('bare'), 'utf8'), 'no type at all')
    assert.equal((await room.upload(room.at('empty'), '')).status, 200)
    assert.equal(readFileSync(room.at('empty'), 'utf8'), '')
  })

  test('POST /files/upload-v2 returns the name, path and type of the file that it has written', async () => {
    await using room = await FilesRoom.start()
    const { body } = await room.upload(room.at('a', 'written.txt'), 'x')
    assert.deepEqual(body, { name: 'written.txt', path: room.at('a', 'written.txt'), type: 'file' })
  })

  test('POST /files/upload answers 200 for the field `file` of a form, and 400 for a form without it', async () => {
    await using room = await FilesRoom.start()
    const bytes = Buffer.from(Array.from({ length: 300_000 }, (_, at) => (at * 7) % 256))
    const form = formOf([
      ['other', 'passed over'],
      ['file', new Blob([bytes])],
    ])
    assert.equal((await room.form('/upload', { path: room.at('from-form') }, form)).status, 200)
    assert.equal(sum(readFileSync(room.at('from-form'))), sum(bytes))
    const without = await room.form('/upload-v2', { path: room.at('x') }, formOf([['other', 'x']]))
    assert.deepEqual(refusal(without), [400, 'BAD_REQUEST'])
    assert.ok(!existsSync(room.at('x')))
  })

  test('an uploaded new file has mode 0644, and an existing file keeps its mode', async () => {
    await using room = await FilesRoom.start()
    await room.upload(room.at('new'), 'x')
    assert.equal(statSync(room.at('new')).mode & 0o7777, 0o644)
    chmodSync(room.at('new'), 0o750)
    await room.upload(room.at('new'), 'y')
    assert.equal(statSync(room.at('new')).mode & 0o7777, 0o750)
  })

  test('an upload that breaks off leaves the old file unchanged and leaves no temporary file', async () => {
    await using room = await FilesRoom.start()
    writeFileSync(room.at('old'), 'old')
    const boundary = 'cut'
    const head = `--${boundary}\r\ncontent-disposition: form-data; name="file"; filename="x"\r\n\r\n`
    const multipart = { 'content-type': `multipart/form-data; boundary=${boundary}` }
    for (const [headers, beginning] of [
      [{ 'content-length': 1_000_000 }, ''],
      [{ 'transfer-encoding': 'chunked' }, ''],
      [{ ...multipart, 'content-length': 1_000_000 }, head],
    ] as const) {
      const outgoing = room.begin('POST', '/upload-v2', { path: room.at('old') }, headers)
      outgoing.write(beginning + 'x'.repeat(100_000))
      await until(() => halfFiles(room).length === 1, 'the new file being received')
      outgoing.destroy()
      await until(() => halfFiles(room).length === 0, 'the new file removed')
      assert.equal(readFileSync(room.at('old'), 'utf8'), 'old')
    }
  })

  test('an upload as a form whose end is missing is refused with 400, and the old file stays', async () => {
    await using room = await FilesRoom.start()
    writeFileSync(room.at('old'), 'old')
    const type = 'multipart/form-data; boundary=b'
    const body = '--b\r\ncontent-disposition: form-data; name="file"\r\n\r\nhalf a file'
    assert.deepEqual(refusal(await room.upload(room.at('old'), body, type)), [400, 'BAD_REQUEST'])
    assert.equal(readFileSync(room.at('old'), 'utf8'), 'old')
    for (const wrong of ['', '--b', '--b\r\n', '--bx\r\n\r\n--b--', '--b junk\r\n\r\n\r\n--b--']) {
      assert.equal((await room.upload(room.at('old'), wrong, type)).status, 400, JSON.stringify(wrong))
    }
    assert.equal((await room.upload(room.at('old'), body, 'multipart/form-data')).status, 400)
    assert.equal(readFileSync(room.at('old'), 'utf8'), 'old')
    await until(() => halfFiles(room).length === 0, 'what was begun is removed')
  })

  test('an upload to a mounted file such as /etc/hosts replaces its contents', {
    skip: needsRoot,
  }, async () => {
    await using room = await FilesRoom.start()
    for (const name of ['own', 'hosts']) writeFileSync(room.at(name), 'old')
    execFileSync('mount', ['--bind', room.at('own'), room.at('hosts')])
    using _ = { [Symbol.dispose]: () => execFileSync('umount', [room.at('hosts')]) }
    assert.equal((await room.upload(room.at('hosts'), 'one host, two hosts')).status, 200)
    const replaced = { files: [room.at('hosts')], pattern: 'host', newValue: 'name' }
    assert.deepEqual((await room.send('/replace', replaced)).body, [{ file: room.at('hosts'), success: true }])
    assert.equal(readFileSync(room.at('own'), 'utf8'), 'one name, two names')
    assert.deepEqual(readdirSync(room.directory), ['hosts', 'own'])
  })

  test('a caller whose upload is refused receives the refusal while still sending the upload', async () => {
    await using room = await FilesRoom.start()
    mkdirSync(room.at('directory'))
    for (const type of ['application/octet-stream', 'multipart/form-data; boundary=b']) {
      const outgoing = room.begin('POST', '/upload-v2', { path: room.at('directory') }, { 'content-type': type })
      outgoing.write('--b\r\ncontent-disposition: form-data; name="file"\r\n\r\n')
      for (let piece = 0; piece < 100; piece++) outgoing.write(Buffer.alloc(100_000))
      assert.deepEqual(refusal(await room.settle(outgoing)), [400, 'INVALID_FILE_PATH'])
      outgoing.destroy()
    }
  })

  test('after an upload and a download of 64 MiB, the file is complete', async () => {
    await using room = await FilesRoom.start()
    const bytes = Buffer.alloc(64 * 1024 * 1024, 'what a large file holds, \r\n--b')
    assert.equal((await room.upload(room.at('large'), bytes)).status, 200)
    assert.equal(sum(readFileSync(room.at('large'))), sum(bytes))
    assert.equal(
      (await room.form('/upload-v2', { path: room.at('form') }, formOf([['file', new Blob([bytes])]]))).status,
      200,
    )
    assert.equal(sum((await room.get('/download', { path: room.at('form') })).bytes), sum(bytes))
  })
})

suite('POST /files/bulk-upload', () => {
  test('POST /files/bulk-upload answers 200 and writes every file, and makes missing directories', async () => {
    await using room = await FilesRoom.start()
    const form = formOf([
      ['files[0].path', room.at('x', 'one')],
      ['files[0].file', new Blob(['1'])],
      ['files[7].path', room.at('y', 'zwei é.txt')],
      ['files[7].file', new Blob(['two'])],
      ['files[8].path', room.at('empty')],
      ['files[8].file', new Blob([])],
    ])
    assert.deepEqual(refusal(await room.form('/bulk-upload', {}, form)), [200, undefined])
    assert.equal(readFileSync(room.at('x', 'one'), 'utf8'), '1')
    assert.equal(readFileSync(room.at('y', 'zwei é.txt'), 'utf8'), 'two')
    assert.equal(readFileSync(room.at('empty'), 'utf8'), '')
  })

  const upload = (room: FilesRoom, ...paths: string[]) =>
    room.form(
      '/bulk-upload',
      {},
      formOf(
        paths.flatMap((path, at) => [
          [`files[${at}].path`, path] as const,
          [`files[${at}].file`, new Blob(['x'])] as const,
        ]),
      ),
    )

  test('an upload to a directory answers 400, without permission 403, below /proc 404, to a full disk 422', {
    skip: needsRoot,
  }, async () => {
    await using room = await FilesRoom.start({ user: 'nobody' })
    mkdirSync(room.at('roots'))
    symlinkSync('/proc/nowhere/file', room.at('nowhere'))
    mkdirSync(room.at('full'))
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'nr_inodes=1,mode=777', 'none', room.at('full')])
    using _ = { [Symbol.dispose]: () => execFileSync('umount', [room.at('full')]) }
    for (const [path, ...wanted] of [
      [room.at('roots', 'file'), 403, 'FILE_ACCESS_DENIED'],
      [room.at('full', 'file'), 422, 'UNPROCESSABLE_ENTITY'],
      [room.at('roots'), 400, 'INVALID_FILE_PATH'],
      ['/proc/nowhere/file', 404, 'FILE_NOT_FOUND'],
    ] as const) {
      const reply = await upload(room, path)
      assert.deepEqual(refusal(reply), wanted)
      assert.ok(reply.body.message.includes(path), reply.body.message)
      assert.deepEqual(refusal(await upload(room, path, path)), wanted)
    }
    assert.deepEqual(refusal(await upload(room, room.at('roots'), room.at('roots', 'file'))), [400, 'BAD_REQUEST'])
  })

  test('600 uploads from one client at the same time all succeed', async () => {
    await using room = await FilesRoom.start()
    const names = Array.from({ length: 600 }, (_, at) => room.at(`many-${at}`))
    const replies = await Promise.all(names.map((name) => upload(room, name)))
    assert.deepEqual(new Set(replies.map(({ status }) => status)), new Set([200]))
    const listed = await Promise.all(names.map((path) => room.get('/info', { path })))
    assert.deepEqual(new Set(listed.map(({ status }) => status)), new Set([200]))
  })

  test('POST /files/bulk-upload answers 400 with all failures, and writes all other files', async () => {
    await using room = await FilesRoom.start()
    mkdirSync(room.at('directory'))
    const form = formOf([
      ['files[0].path', room.at('directory')],
      ['files[0].file', new Blob(['x'.repeat(1_000_000)])],
      ['files[1].path', room.at('good')],
      ['files[1].file', new Blob(['good'])],
      ['files[2].file', new Blob(['nameless'])],
      ['files[3].path', ''],
      ['files[3].file', new Blob(['nameless'])],
      ['files[4].path', 'a\0b'],
      ['files[4].file', new Blob(['x'])],
      ['files[5].path', room.at('good', 'below-a-file')],
      ['files[5].file', new Blob(['x'])],
    ])
    const { status, body } = await room.form('/bulk-upload', {}, form)
    assert.equal(status, 400)
    assert.match(body.message, /directory: This is a directory\./)
    assert.match(body.message, /files\[2\]\.path must come before files\[2\]\.file/)
    assert.match(body.message, /files\[3\]\.path must come before/)
    assert.match(body.message, /files\[4\]\.path must not contain a NUL/)
    assert.match(body.message, /below-a-file: /)
    assert.equal(readFileSync(room.at('good'), 'utf8'), 'good')
  })

  test('POST /files/bulk-upload answers 400 without files, without a form, and for more than 2000 parts', async () => {
    await using room = await FilesRoom.start()
    assert.equal((await room.form('/bulk-upload', {}, formOf([['x', 'y']]))).status, 400)
    assert.equal((await room.send('/bulk-upload', {})).status, 400)
    const many = Array.from({ length: 2001 }, (_, at) => [`files[${at}].path`, 'x'] as const)
    assert.match((await room.form('/bulk-upload', {}, formOf(many))).body.message, /2000 parts/)
    const long = formOf([['files[0].path', 'x'.repeat(100_000)]])
    assert.deepEqual(refusal(await room.form('/bulk-upload', {}, long)), [400, 'BAD_REQUEST'])
  })

  test('a bulk upload that breaks off in its second file stores the first, and leaves the second unchanged', async () => {
    await using room = await FilesRoom.start()
    writeFileSync(room.at('second'), 'old')
    const part = (name: string, value: string) =>
      `--b\r\ncontent-disposition: form-data; name="${name}"\r\n\r\n${value}`
    const outgoing = room.begin('POST', '/bulk-upload', {}, { 'content-type': 'multipart/form-data; boundary=b' })
    outgoing.write(`${part('files[0].path', room.at('first'))}\r\n${part('files[0].file', 'first')}\r\n`)
    outgoing.write(`${part('files[1].path', room.at('second'))}\r\n${part('files[1].file', 'x'.repeat(100_000))}`)
    await until(() => existsSync(room.at('first')) && halfFiles(room).length === 1, 'the second file being written')
    outgoing.destroy()
    await until(() => halfFiles(room).length === 0, 'the new file removed')
    assert.deepEqual(
      [readFileSync(room.at('first'), 'utf8'), readFileSync(room.at('second'), 'utf8')],
      ['first', 'old'],
    )
  })
})

suite('uploads over an existing file', () => {
  test('an upload over an existing file keeps the file’s inode, hard links and open readers', async () => {
    await using room = await FilesRoom.start()
    writeFileSync(room.at('file'), 'old '.repeat(50_000))
    linkSync(room.at('file'), room.at('other'))
    const { ino } = statSync(room.at('file'))
    const reader = openSync(room.at('file'), 'r')
    using _ = { [Symbol.dispose]: () => closeSync(reader) }
    for (const contents of ['new', 'x'.repeat(300_000), '', 'y'.repeat(70_001)]) {
      assert.equal((await room.upload(room.at('file'), contents)).status, 200)
      assert.deepEqual(
        [statSync(room.at('file')).ino, readFileSync(room.at('other'), 'utf8'), fstatSync(reader).size],
        [ino, contents, contents.length],
      )
    }
  })

  test('during an upload, no temporary name appears in the directory', async () => {
    await using room = await FilesRoom.start()
    writeFileSync(room.at('old'), 'x')
    const seen = new Set<string | null>()
    const watcher = watch(room.directory, (_, name) => seen.add(name))
    using _ = { [Symbol.dispose]: () => watcher.close() }
    for (const name of ['new', 'old', 'last']) await room.upload(room.at(name), 'contents')
    await until(() => seen.has('last'), 'the last name was seen')
    assert.deepEqual([...seen].sort(), ['last', 'new', 'old'])
  })

  test('an uploaded new file gets the group of a setgid directory', { skip: needsRoot }, async () => {
    await using room = await FilesRoom.start()
    mkdirSync(room.at('shared'))
    chownSync(room.at('shared'), 0, 1234)
    chmodSync(room.at('shared'), 0o2775)
    assert.equal((await room.upload(room.at('shared', 'file'), 'x')).status, 200)
    assert.equal(statSync(room.at('shared', 'file')).gid, 1234)
  })

  test('an upload over a running program succeeds, and gives the file a new inode', async () => {
    await using room = await FilesRoom.start()
    copyFileSync('/bin/sleep', room.at('program'))
    chmodSync(room.at('program'), 0o755)
    const running = spawn(room.at('program'), ['60'])
    using _ = { [Symbol.dispose]: () => running.kill('SIGKILL') }
    await once(running, 'spawn')
    assert.deepEqual(refusal(await room.upload(room.at('program'), '#!/bin/sh\necho new\n')), [200, undefined])
    assert.equal(execFileSync(room.at('program'), { encoding: 'utf8' }), 'new\n')
    assert.deepEqual(readdirSync(room.directory), ['program'])
  })

  test('after 24 uploads to one path at the same time, the file has the contents of just one upload', async () => {
    await using room = await FilesRoom.start()
    writeFileSync(room.at('file'), 'x'.repeat(500_000))
    const contents = Array.from({ length: 24 }, (_, at) => String.fromCharCode(97 + at).repeat(1 + at * 11_000))
    const replies = await Promise.all(contents.map((text) => room.upload(room.at('file'), text)))
    assert.deepEqual(new Set(replies.map(({ status }) => status)), new Set([200]))
    assert.ok(contents.includes(readFileSync(room.at('file'), 'utf8')))
  })
})

suite('uploads through symbolic links', () => {
  test('an upload follows a link, even if the link’s target and the target’s directory do not exist yet', async () => {
    await using room = await FilesRoom.start()
    writeFileSync(room.at('target'), 'old')
    const links = [
      ['link', 'target', 'target'],
      ['to-link', 'link', 'target'],
      ['dangling', 'nowhere', 'nowhere'],
      ['absolute', room.at('far', 'away'), 'far/away'],
      ['twice', 'to-nothing', 'in/between'],
      ['to-nothing', './in/../in/between', 'in/between'],
    ] as const
    for (const [name, to] of links) symlinkSync(to, room.at(name))
    for (const [name, , target] of links) {
      assert.deepEqual(refusal(await room.upload(room.at(name), `through ${name}`)), [200, undefined])
      assert.ok(lstatSync(room.at(name)).isSymbolicLink(), name)
      assert.equal(readFileSync(room.at(target), 'utf8'), `through ${name}`)
    }
  })

  test('an upload through a circular link, or through a link to a directory, is refused with 400', async () => {
    await using room = await FilesRoom.start()
    mkdirSync(room.at('directory'))
    for (const [name, to] of [
      ['loop', 'back'],
      ['back', 'loop'],
      ['to-directory', 'directory'],
      ['slash', 'new/'],
    ] as const)
      symlinkSync(to, room.at(name))
    for (const name of ['loop', 'to-directory', 'slash'])
      assert.deepEqual(refusal(await room.upload(room.at(name), 'x')), [400, 'INVALID_FILE_PATH'], name)
  })
})
