import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { needsRoot } from '#test/needs-root.ts'
import { FilesRoom, type Reply, refusal } from './testing/files-room.ts'

const names = ({ body }: Reply): string[] => body.map(({ name }: { name: string }) => name)

suite('paths that are not ordinary files', () => {
  /** Calls six endpoints for files with the file path `path`. Returns the status and error code of each answer. */
  const answers = async (room: FilesRoom, path: string) => {
    const [list, info, download, find, search] = await Promise.all([
      room.get('', { path }),
      room.get('/info', { path }),
      room.get('/download', { path }),
      room.get('/find', { path, pattern: 'x' }),
      room.get('/search', { path, pattern: 'x' }),
    ])
    // The upload runs last, because it may create the path.
    const replies = { list, info, download, find, search, upload: await room.upload(path, 'x') }
    return Object.fromEntries(Object.entries(replies).map(([name, reply]) => [name, refusal(reply)] as const))
  }
  const missing = [404, 'FILE_NOT_FOUND']
  const wrong = [400, 'INVALID_FILE_PATH']
  const fine = [200, undefined]

  test('file calls that read or write contents refuse fifos, sockets and devices without waiting', async () => {
    await using room = await FilesRoom.start()
    execFileSync('mkfifo', [room.at('fifo')])
    const server = createServer().listen(room.at('socket'))
    await once(server, 'listening')
    try {
      for (const path of [room.at('fifo'), room.at('socket'), '/dev/zero', '/dev/tty']) {
        const { list, info, download, find, search, upload } = await answers(room, path)
        assert.deepEqual([list, info, download, find, search, upload], [wrong, fine, wrong, wrong, wrong, wrong], path)
      }
      const replaced = await room.send('/replace', { files: [room.at('fifo')], pattern: 'a', newValue: 'b' })
      assert.equal(replaced.body[0].success, false)
    } finally {
      server.close()
    }
    assert.equal((await room.delete({ path: room.at('fifo') })).status, 204)
  })

  test('file calls answer 400 or 404 for paths that are missing, below a file, too long, empty or have a NUL', async () => {
    await using room = await FilesRoom.start()
    writeFileSync(room.at('file'), '')
    const { upload, ...reading } = await answers(room, room.at('missing', 'x'))
    assert.deepEqual(Object.values(reading), Array(5).fill(missing))
    assert.deepEqual(upload, fine)
    assert.deepEqual(Object.values(await answers(room, room.at('file', 'x'))), Array(6).fill(wrong))
    assert.deepEqual(Object.values(await answers(room, `/${'x'.repeat(5000)}`)), Array(6).fill(wrong))
    for (const [status] of Object.values(await answers(room, 'a\0b'))) assert.equal(status, 400)
    const { list, ...others } = await answers(room, '')
    assert.deepEqual(list, fine)
    for (const [status] of Object.values(others)) assert.equal(status, 400)
    assert.equal((await room.send('/bulk-download', { paths: ['\ud800'] })).status, 400)
  })

  test('a file name that is not UTF-8 appears in lists of files, and in a query causes no server error', async () => {
    await using room = await FilesRoom.start()
    writeFileSync(Buffer.concat([Buffer.from(`${room.directory}/`), Buffer.of(0xff, 0x0a)]), 'odd')
    assert.deepEqual(names(await room.get('', { path: room.directory })), ['\ufffd\n'])
    const found = await room.get('/find', { path: room.directory, pattern: 'odd' })
    assert.deepEqual(found.body, [{ file: room.at('\ufffd\n'), line: 1, content: 'odd' }])
    const reply = await fetch(room.url(`/download?path=${encodeURIComponent(room.directory)}/%ff`))
    assert.ok([400, 404].includes(reply.status), String(reply.status))
  })

  test('file calls resolve `..` and links as the kernel does, and refuse circular and dangling links', async () => {
    await using room = await FilesRoom.start()
    mkdirSync(room.at('a', 'b'), { recursive: true })
    writeFileSync(room.at('a', 'file'), 'found')
    symlinkSync('a/b', room.at('to-b'))
    symlinkSync('circle', room.at('circle'))
    symlinkSync('nowhere', room.at('dangling'))
    symlinkSync('a', room.at('to-a'))
    // The kernel first follows the link `to-b`, and then goes up with `..`. If Alcove removed `to-b/..` from the path, Alcove would
    // not find this file.
    assert.equal((await room.get('/download', { path: `${room.directory}/to-b/../file` })).text, 'found')
    assert.equal((await room.get('/download', { path: `${room.at('to-a')}/file` })).text, 'found')
    assert.equal((await room.get('/download', { path: `/../../..${room.at('a', 'file')}` })).text, 'found')
    assert.deepEqual(refusal(await room.get('/download', { path: room.at('circle') })), wrong)
    assert.deepEqual(refusal(await room.get('/download', { path: room.at('dangling') })), missing)
    assert.deepEqual(refusal(await room.get('', { path: room.at('circle') })), wrong)
    assert.deepEqual(refusal(await room.get('', { path: room.at('dangling') })), missing)
    assert.equal((await room.get('', { path: room.at('to-a') })).body[0].path, room.at('to-a', 'b'))
  })
})

suite('permissions of file calls', () => {
  test('file calls have the permissions of the sandbox’s user, also through links', { skip: needsRoot }, async () => {
    await using room = await FilesRoom.start({ user: 'nobody' })
    writeFileSync(room.at('shadow'), 'root:secret\n')
    chmodSync(room.at('shadow'), 0o600)
    mkdirSync(room.at('closed'), { mode: 0o700 })
    writeFileSync(room.at('closed', 'file'), 'secret\n')
    const open = room.openDirectory('open')
    symlinkSync('../shadow', join(open, 'link'))
    symlinkSync('../closed', join(open, 'way'))
    const denied = [403, 'FILE_ACCESS_DENIED']
    for (const path of [room.at('shadow'), join(open, 'link'), room.at('closed', 'file'), join(open, 'way', 'file')]) {
      const replies = await Promise.all([room.get('/download', { path }), room.upload(path, 'x')])
      for (const reply of replies) assert.deepEqual(refusal(reply), denied, path)
      const [replaced] = (await room.send('/replace', { files: [path], pattern: 'secret', newValue: 'x' })).body
      assert.equal(replaced.success, false)
      const bulk = await room.send('/bulk-download', { paths: [path] })
      assert.match(bulk.text, /name="error"[\s\S]*FILE_ACCESS_DENIED/)
      assert.ok(!bulk.text.includes('secret'))
      assert.deepEqual(refusal(await room.post('/permissions', { path, mode: '777' })), denied)
    }
    for (const path of [room.at('closed'), join(open, 'way')]) {
      for (const [call, query] of [
        ['', {}],
        ['/find', { pattern: 'secret' }],
        ['/search', { pattern: '*' }],
      ] as const) {
        assert.deepEqual(refusal(await room.get(call, { path, ...query })), denied, `${call} ${path}`)
      }
    }
    assert.deepEqual((await room.get('/find', { path: room.directory, pattern: 'secret' })).body, [])
    const into = { source: room.at('shadow'), destination: join(open, 'mine') }
    assert.deepEqual(refusal(await room.post('/move', into)), denied)
    assert.deepEqual(refusal(await room.delete({ path: room.at('shadow') })), denied)
    assert.deepEqual(refusal(await room.delete({ path: room.at('closed'), recursive: 'true' })), denied)
    assert.deepEqual(refusal(await room.post('/folder', { path: room.at('closed', 'x') })), denied)
    assert.equal((await room.upload(join(open, 'own'), 'x')).status, 200)
    assert.equal(statSync(join(open, 'own')).uid, 65534)
    assert.equal(readFileSync(room.at('shadow'), 'utf8'), 'root:secret\n')
    assert.equal(readFileSync(room.at('closed', 'file'), 'utf8'), 'secret\n')
  })

  test('file calls answer 400 if the sandbox’s user does not exist in its image', async () => {
    await using room = await FilesRoom.start({ user: 'no-such-user' })
    for (const reply of [
      await room.get('', { path: '/' }),
      await room.upload(room.at('x'), 'x'),
      await room.get('/search', { path: '/tmp', pattern: 'x' }),
    ]) {
      assert.equal(reply.status, 400)
    }
  })
})
