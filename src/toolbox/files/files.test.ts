import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
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
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { homedir, userInfo } from 'node:os'
import { basename, join, relative } from 'node:path'
import { suite, test } from 'node:test'
import { needsRoot } from '#test/needs-root.ts'
import { FilesRoom, type Reply, refusal } from './testing/files-room.ts'

const names = ({ body }: Reply): string[] => body.map(({ name }: { name: string }) => name)

suite('GET /files', () => {
  test('GET /files answers 200 with the entries of a directory, sorted, and describes links as links', async () => {
    await using room = await FilesRoom.start()
    writeFileSync(room.at('file'), 'hello')
    chmodSync(room.at('file'), 0o4640)
    utimesSync(room.at('file'), 1_700_000_000.5, 1_700_000_000.5)
    mkdirSync(room.at('directory'))
    symlinkSync('nowhere', room.at('link'))
    const reply = await room.get('', { path: room.directory })
    assert.deepEqual([reply.status, names(reply)], [200, ['directory', 'file', 'link']])
    const { username } = userInfo()
    assert.deepEqual(reply.body[1], {
      name: 'file',
      path: room.at('file'),
      isDir: false,
      size: 5,
      mode: 'urw-r-----',
      modTime: '2023-11-14 22:13:20.500 +0000 UTC',
      modifiedAt: '2023-11-14T22:13:20.500Z',
      owner: username,
      group: execFileSync('id', ['-gn'], { encoding: 'utf8' }).trim(),
      permissions: '4640',
    })
    assert.deepEqual([reply.body[0].isDir, reply.body[0].mode], [true, 'drwxr-xr-x'])
    assert.deepEqual([reply.body[2].isDir, reply.body[2].mode], [false, 'Lrwxrwxrwx'])
  })

  test('GET /files lists directories down to the requested depth, and follows no link', async () => {
    await using room = await FilesRoom.start()
    mkdirSync(room.at('a', 'b', 'c'), { recursive: true })
    symlinkSync('/etc', room.at('a', 'etc'))
    const at = async (depth: string) =>
      (await room.get('', { path: room.directory, depth })).body.map(({ path }: { path: string }) =>
        relative(room.directory, path),
      )
    assert.deepEqual(await at('1'), ['a'])
    assert.deepEqual(await at('2'), ['a', 'a/b', 'a/etc'])
    assert.deepEqual(await at('1000'), ['a', 'a/b', 'a/b/c', 'a/etc'])
    for (const depth of ['0', '-1', '1.5', 'x']) {
      assert.equal((await room.get('', { path: room.directory, depth })).status, 400, depth)
    }
  })

  test('GET /files resolves a missing or relative path from the home; `~` has no special meaning', async () => {
    await using room = await FilesRoom.start()
    const inHome = mkdtempSync(join(homedir(), 'alcove-files-'))
    try {
      writeFileSync(join(inHome, 'x'), '')
      const listed = (await room.get('')).body
      assert.ok(listed.some(({ path }: { path: string }) => path === inHome))
      const [found] = (await room.get('', { path: basename(inHome) })).body
      assert.equal(found.path, join(inHome, 'x'))
      assert.equal((await room.get('/info', { path: `./${basename(inHome)}` })).body.isDir, true)
      assert.deepEqual(refusal(await room.get('', { path: `~/${basename(inHome)}` })), [404, 'FILE_NOT_FOUND'])
    } finally {
      rmSync(inHome, { recursive: true })
    }
  })

  test('GET /files lists at most 20000 entries; if there are more, it sets the header X-Alcove-Truncated', async () => {
    await using room = await FilesRoom.start()
    for (let at = 0; at < 20_001; at++) writeFileSync(room.at(String(at)), '')
    const { body, headers } = await room.get('', { path: room.directory })
    assert.deepEqual([body.length, headers['x-alcove-truncated']], [20_000, 'true'])
    rmSync(room.at('0'))
    const whole = await room.get('', { path: room.directory })
    assert.deepEqual([whole.body.length, whole.headers['x-alcove-truncated']], [20_000, undefined])
  })
})

suite('GET /files/info', () => {
  test('GET /files/info answers 200 for files, directories and special files, and follows links', async () => {
    await using room = await FilesRoom.start()
    writeFileSync(room.at('file'), '123')
    symlinkSync('file', room.at('link'))
    execFileSync('mkfifo', [room.at('fifo')])
    const link = (await room.get('/info', { path: room.at('link') })).body
    assert.deepEqual([link.name, link.size, link.mode], ['link', 3, '-rw-r--r--'])
    assert.match((await room.get('/info', { path: room.at('fifo') })).body.mode, /^p/)
    assert.match((await room.get('/info', { path: '/dev/null' })).body.mode, /^Dc/)
    const root = (await room.get('/info', { path: '/' })).body
    assert.deepEqual([root.name, root.path, root.isDir], ['/', '/', true])
    assert.match((await room.get('/info', { path: '/tmp' })).body.mode, /^dt/)
  })
})

suite('POST /files/folder', () => {
  test('POST /files/folder answers 201 for a new folder with its parents, and for an existing folder', async () => {
    await using room = await FilesRoom.start()
    for (const [mode, wanted] of [
      ['700', 0o700],
      ['0750', 0o750],
    ] as const) {
      assert.equal((await room.post('/folder', { path: room.at('a', mode), mode })).status, 201)
      assert.equal(statSync(room.at('a', mode)).mode & 0o7777, wanted)
    }
    assert.equal((await room.post('/folder', { path: room.at('a') })).status, 201)
    for (const mode of ['rwx', '9', '77777', '-1', '0x1ff']) {
      assert.equal((await room.post('/folder', { path: room.at('b'), mode })).status, 400, mode)
    }
    writeFileSync(room.at('file'), '')
    assert.deepEqual(refusal(await room.post('/folder', { path: room.at('file') })), [400, 'INVALID_FILE_PATH'])
  })
})

suite('POST /files/move', () => {
  test('POST /files/move answers 200 for a file and for a directory', async () => {
    await using room = await FilesRoom.start()
    writeFileSync(room.at('one'), '1')
    assert.equal((await room.post('/move', { source: room.at('one'), destination: room.at('two') })).status, 200)
    assert.deepEqual(readdirSync(room.directory), ['two'])
    mkdirSync(room.at('directory'))
    const renamed = { source: room.at('directory'), destination: room.at('renamed') }
    assert.equal((await room.post('/move', renamed)).status, 200)
    assert.deepEqual(readdirSync(room.directory), ['renamed', 'two'])
  })

  test('POST /files/move answers 409 if the destination exists, even as a dangling link, and changes nothing', async () => {
    await using room = await FilesRoom.start()
    writeFileSync(room.at('one'), '1')
    mkdirSync(room.at('directory'))
    symlinkSync('nowhere', room.at('dangling'))
    for (const name of ['directory', 'dangling', 'one']) {
      const reply = await room.post('/move', { source: room.at('one'), destination: room.at(name) })
      assert.deepEqual(refusal(reply), [409, 'CONFLICT'], name)
    }
    assert.deepEqual(readdirSync(room.directory), ['dangling', 'directory', 'one'])
  })

  test('POST /files/move answers 404 for a missing source or parent, and 400 for a move into itself', async () => {
    await using room = await FilesRoom.start()
    mkdirSync(room.at('directory'))
    const move = (source: string, destination: string) => room.post('/move', { source, destination })
    assert.deepEqual(refusal(await move(room.at('missing'), room.at('x'))), [404, 'FILE_NOT_FOUND'])
    assert.deepEqual(refusal(await move(room.at('directory'), room.at('no', 'x'))), [404, 'FILE_NOT_FOUND'])
    const inside = await move(room.at('directory'), room.at('directory', 'inside'))
    assert.deepEqual(refusal(inside), [400, 'INVALID_FILE_PATH'])
    assert.equal((await room.post('/move', { source: room.at('directory') })).status, 400)
  })

  test('POST /files/move between file systems answers 200 and moves all contents, or refuses with 409 or 404', {
    skip: statSync('/dev/shm').dev === statSync('/tmp').dev && 'needs two file systems',
  }, async () => {
    await using room = await FilesRoom.start()
    const other = mkdtempSync('/dev/shm/alcove-files-')
    try {
      mkdirSync(room.at('-tree', 'below'), { recursive: true })
      writeFileSync(room.at('-tree', 'below', 'file'), 'x')
      symlinkSync('below/file', room.at('-tree', 'link'))
      const move = (source: string, destination: string) => room.post('/move', { source, destination })
      assert.equal((await move(room.at('-tree'), join(other, 'tree'))).status, 200)
      assert.equal(readFileSync(join(other, 'tree', 'link'), 'utf8'), 'x')
      assert.ok(lstatSync(join(other, 'tree', 'link')).isSymbolicLink() && !existsSync(room.at('-tree')))
      writeFileSync(room.at('file'), 'y')
      assert.deepEqual(refusal(await move(room.at('file'), join(other, 'tree'))), [409, 'CONFLICT'])
      assert.deepEqual(refusal(await move(room.at('missing'), join(other, 'x'))), [404, 'FILE_NOT_FOUND'])
      assert.equal(readFileSync(room.at('file'), 'utf8'), 'y')
    } finally {
      rmSync(other, { recursive: true })
    }
  })
})

suite('POST /files/permissions', () => {
  test('POST /files/permissions answers 200 and sets mode, owner and group', { skip: needsRoot }, async () => {
    await using room = await FilesRoom.start()
    writeFileSync(room.at('file'), '')
    const change = { path: room.at('file'), mode: '755', owner: 'nobody', group: '4242' }
    assert.equal((await room.post('/permissions', change)).status, 200)
    const { mode, uid, gid } = statSync(room.at('file'))
    assert.deepEqual([mode & 0o7777, uid, gid], [0o755, 65534, 4242])
    const { owner, group } = (await room.get('/info', { path: room.at('file') })).body
    assert.deepEqual([owner, group], ['nobody', '4242'])
  })

  test('POST /files/permissions answers 400 for an unknown owner or group, or an invalid mode', async () => {
    await using room = await FilesRoom.start()
    writeFileSync(room.at('file'), '')
    const change = (query: Record<string, string>) => room.post('/permissions', { path: room.at('file'), ...query })
    assert.deepEqual(refusal(await change({ owner: 'no-such-user' })), [400, 'BAD_REQUEST'])
    assert.equal((await change({ group: 'no-such-group' })).status, 400)
    assert.equal((await change({ mode: 'u+x' })).status, 400)
    assert.equal((await room.post('/permissions', { path: room.at('missing'), mode: '644' })).status, 404)
  })
})

suite('DELETE /files', () => {
  test('DELETE /files answers 204 for a file, a directory if recursive, and a link, whose target stays', async () => {
    await using room = await FilesRoom.start()
    mkdirSync(room.at('directory', 'below'), { recursive: true })
    writeFileSync(room.at('file'), '')
    symlinkSync('directory', room.at('link'))
    assert.equal((await room.delete({ path: room.at('link'), recursive: 'true' })).status, 204)
    const refused = await room.delete({ path: room.at('directory') })
    assert.deepEqual(refusal(refused), [400, 'INVALID_FILE_PATH'])
    assert.equal((await room.delete({ path: room.at('file') })).status, 204)
    assert.deepEqual(readdirSync(room.directory), ['directory'])
    assert.equal((await room.delete({ path: room.at('directory'), recursive: 'true' })).status, 204)
    assert.deepEqual(refusal(await room.delete({ path: room.at('directory') })), [404, 'FILE_NOT_FOUND'])
    assert.equal((await room.delete({ path: '/', recursive: 'true' })).status, 409)
  })
})
