import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { suite, test } from 'node:test'
import fc from 'fast-check'
import { replacing } from './replace.ts'
import { FilesRoom, refusal } from './testing/files-room.ts'

const busybox = '/bin/busybox'
const needsBusybox = existsSync(busybox) ? false : 'needs busybox-static'

suite('GET /files/find', () => {
  test('GET /files/find answers 200 with file, line number and content, sorted; `pattern` is literal text', async () => {
    await using room = await FilesRoom.start()
    mkdirSync(room.at('src'))
    writeFileSync(room.at('src', 'b.ts'), 'first\nsome TODO: a.b* é\r\nlast')
    writeFileSync(room.at('src', 'a: 1.ts'), 'a.b*\naxbb\n\na.b*')
    const ask = async (pattern: string, path = room.directory) => (await room.get('/find', { path, pattern })).body
    assert.deepEqual(await ask('a.b*'), [
      { file: room.at('src', 'a: 1.ts'), line: 1, content: 'a.b*' },
      { file: room.at('src', 'a: 1.ts'), line: 4, content: 'a.b*' },
      { file: room.at('src', 'b.ts'), line: 2, content: 'some TODO: a.b* é' },
    ])
    assert.deepEqual(await ask('nothing like it'), [])
    assert.deepEqual(await ask('last', room.at('src', 'b.ts')), [
      { file: room.at('src', 'b.ts'), line: 3, content: 'last' },
    ])
    assert.deepEqual(await ask('-last'), [])
    assert.deepEqual(await ask('$(touch x); `id` \'"'), [])
  })

  test('GET /files/find skips binary files, fifos and links', async () => {
    await using room = await FilesRoom.start()
    writeFileSync(room.at('binary'), Buffer.from('word\0word'))
    execFileSync('mkfifo', [room.at('fifo')])
    symlinkSync('/etc', room.at('link'))
    symlinkSync('/dev/zero', room.at('endless'))
    writeFileSync(room.at('text'), 'word root')
    const found = (await room.get('/find', { path: room.directory, pattern: 'ro' })).body
    assert.deepEqual(
      found.map(({ file }: { file: string }) => file),
      [room.at('text')],
    )
  })

  test('GET /files/find and GET /files/search give the same results with BusyBox as with GNU tools', {
    skip: needsBusybox,
  }, async (t) => {
    const tools = mkdtempSync(join(tmpdir(), 'alcove-busybox-'))
    for (const name of ['cmp', 'find', 'grep', 'sh', 'tr']) symlinkSync(busybox, join(tools, name))
    t.after(() => rmSync(tools, { recursive: true }))
    await using usual = await FilesRoom.start()
    await using busy = await FilesRoom.start({ env: { PATH: tools } })
    const answersOf = async (room: FilesRoom) => {
      mkdirSync(room.at('src'))
      writeFileSync(room.at('binary'), Buffer.from('a.b*\n\0'))
      execFileSync('mkfifo', [room.at('fifo')])
      symlinkSync('src', room.at('link'))
      for (const name of ['a:1:b', 'new\nline', "'$(x)`\\", 'ÿé', '-n'])
        writeFileSync(room.at('src', name), `a.b* \\n\\ %s \n\n  -e ü  \naxbb\nx: a.b*\t\r\n${name}`)
      const ask = async (pattern: string, path = room.directory) => {
        const { status, body } = await room.get('/find', { path, pattern })
        assert.equal(status, 200)
        return body.map((match: { file: string }) => ({ ...match, file: match.file.replace(room.directory, '') }))
      }
      return [
        ...(await Promise.all(['a.b*', '-e', '\\n', '%s', 'nowhere', '$(x)'].map((pattern) => ask(pattern)))),
        await ask('a.b*', room.at('src', 'new\nline')),
        await ask('a.b*', room.at('binary')),
      ]
    }
    const expected = await answersOf(usual)
    assert.deepEqual(
      expected.map(({ length }) => length),
      [10, 5, 5, 5, 0, 1, 2, 0],
    )
    assert.deepEqual(await answersOf(busy), expected)
  })

  test('GET /files/find cuts long lines, returns 10000 matches at most, and sets X-Alcove-Truncated if cut', async () => {
    await using room = await FilesRoom.start()
    writeFileSync(room.at('many'), 'match\n'.repeat(10_001))
    const { body, headers } = await room.get('/find', { path: room.directory, pattern: 'match' })
    assert.deepEqual([body.length, headers['x-alcove-truncated']], [10_000, 'true'])
    writeFileSync(room.at('many'), `${'x'.repeat(1_000_000)}match\nmatch`)
    const [long, short] = (await room.get('/find', { path: room.directory, pattern: 'match' })).body
    assert.ok(long.content.length > 1000 && long.content.length < 20_000)
    assert.deepEqual([short.line, short.content], [2, 'match'])
  })

  test('GET /files/find answers 400 for an empty text and for a text of several lines', async () => {
    await using room = await FilesRoom.start()
    for (const pattern of ['', 'a\nb']) {
      assert.equal((await room.get('/find', { path: room.directory, pattern })).status, 400)
    }
  })

  test('GET /files/find and GET /files/search answer 422 if the image lacks grep and find', async () => {
    await using room = await FilesRoom.start({ env: { PATH: '/nowhere' } })
    for (const call of ['/find', '/search']) {
      const reply = await room.get(call, { path: room.directory, pattern: 'x' })
      assert.deepEqual(refusal(reply), [422, 'UNPROCESSABLE_ENTITY'])
    }
  })
})

suite('GET /files/search', () => {
  test('GET /files/search answers 200 with the matching names at any depth, sorted', async () => {
    await using room = await FilesRoom.start()
    mkdirSync(room.at('src', 'deep.ts'), { recursive: true })
    for (const name of ['a.ts', 'src/b.ts', 'src/c.js', 'src/-x.ts', 'src/new\nline.ts'])
      writeFileSync(room.at(name), '')
    symlinkSync('/etc', room.at('link.ts'))
    const ask = async (pattern: string, path = room.directory) =>
      (await room.get('/search', { path, pattern })).body.files.map((file: string) =>
        file.slice(room.directory.length + 1),
      )
    assert.deepEqual(await ask('*.ts'), ['a.ts', 'link.ts', 'src/-x.ts', 'src/b.ts', 'src/deep.ts', 'src/new\nline.ts'])
    assert.deepEqual(await ask('**/[bc].*'), ['src/b.ts', 'src/c.js'])
    assert.deepEqual(await ask('src/*.js'), ['src/c.js'])
    assert.deepEqual(await ask('?.ts', `${room.directory}/`), ['a.ts', 'src/b.ts'])
    assert.deepEqual(await ask('-x.ts', room.at('src')), ['src/-x.ts'])
    assert.deepEqual(await ask('passwd'), [])
    mkdirSync(room.at('src', 'a', 'b'), { recursive: true })
    for (const name of ['src/a/d.mjs', 'src/d.mjs', 'src/a/b/d.mjs', 'd.mjs', 'src/xd.mjs'])
      writeFileSync(room.at(name), '')
    const below = ['src/a/b/d.mjs', 'src/a/d.mjs', 'src/d.mjs']
    assert.deepEqual(await ask('src/**/*.mjs'), [...below, 'src/xd.mjs'])
    for (const pattern of ['src/**/d.mjs', '**/src/**/d.mjs', './src/**/**/d.mjs', '/**/src/**/d.mjs'])
      assert.deepEqual(await ask(pattern), below, pattern)
    assert.deepEqual(await ask('src/**/b/**/d.mjs'), ['src/a/b/d.mjs'])
    assert.deepEqual(await ask('./**/d.mjs'), ['d.mjs', ...below])
    assert.deepEqual(await ask('*.ts; touch /tmp/x'), [])
  })

  test('GET /files/search answers 400 for a pattern with more than six `**/`', async () => {
    await using room = await FilesRoom.start()
    const ask = (pattern: string) => room.get('/search', { path: room.directory, pattern })
    assert.deepEqual((await ask(`${'**/a/'.repeat(6)}b`)).body, { files: [] })
    assert.equal((await ask(`${'**/a/'.repeat(7)}b`)).status, 400)
  })

  test('GET /files/search returns at most 10000 names; if there are more, it sets X-Alcove-Truncated', async () => {
    await using room = await FilesRoom.start()
    for (let at = 0; at < 10_001; at++) writeFileSync(room.at(`${at}.x`), '')
    const { body, headers } = await room.get('/search', { path: room.directory, pattern: '*.x' })
    assert.deepEqual([body.files.length, headers['x-alcove-truncated']], [10_000, 'true'])
  })

  test('GET /files, GET /files/find and GET /files/search cut results at 16 MiB and set X-Alcove-Truncated', async () => {
    await using room = await FilesRoom.start()
    const deep = room.at(...Array<string>(15).fill('\x01'.repeat(250)))
    mkdirSync(deep, { recursive: true })
    for (let at = 0; at < 5000; at++) writeFileSync(join(deep, `${at}.x`), 'x\n')
    const searched = await room.get('/search', { path: room.directory, pattern: '*.x' })
    const listed = await room.get('', { path: deep })
    const found = await room.get('/find', { path: room.directory, pattern: 'x' })
    for (const { body, headers } of [searched, listed, found]) {
      assert.equal(headers['x-alcove-truncated'], 'true')
      const MiB = JSON.stringify(body).length / 1024 ** 2
      assert.ok(MiB > 16 && MiB < 16.1, `${MiB}`)
    }
  })
})

suite('POST /files/replace', () => {
  test('POST /files/replace answers 200 with a result for each file, in order; `pattern` is literal text', async () => {
    await using room = await FilesRoom.start()
    writeFileSync(room.at('one'), 'a.b a.b axb $&')
    chmodSync(room.at('one'), 0o750)
    writeFileSync(room.at('two'), 'nothing')
    const { ino } = statSync(room.at('two'))
    const files = ['one', 'two', 'missing', '.'].map((name) => room.at(name))
    const { status, body } = await room.send('/replace', { files, pattern: 'a.b', newValue: '$&é' })
    assert.equal(status, 200)
    assert.deepEqual(body, [
      { file: files[0], success: true },
      { file: files[1], success: true },
      { file: files[2], success: false, error: `file not found: ${files[2]}. There is no such file or directory.` },
      { file: files[3], success: false, error: `${files[3]}: This is a directory.` },
    ])
    assert.equal(readFileSync(room.at('one'), 'utf8'), '$&é $&é axb $&')
    assert.equal(statSync(room.at('one')).mode & 0o7777, 0o750)
    // The unchanged inode number shows that a file without the text is not written at all.
    assert.equal(statSync(room.at('two')).ino, ino)
    assert.deepEqual(readdirSync(room.directory).sort(), ['one', 'two'])
  })

  test('POST /files/replace leaves a binary file unchanged, even if the text comes before its first NUL', async () => {
    await using room = await FilesRoom.start()
    const bytes = Buffer.concat([Buffer.from('word '.repeat(100_000)), Buffer.of(0)])
    writeFileSync(room.at('binary'), bytes)
    const [result] = (await room.send('/replace', { files: [room.at('binary')], pattern: 'word', newValue: 'x' })).body
    assert.equal(result.success, false)
    assert.match(result.error, /binary/)
    assert.deepEqual(readFileSync(room.at('binary')), bytes)
    assert.deepEqual(readdirSync(room.directory), ['binary'])
  })

  test('POST /files/replace replaces a text in a file of 2 MB', async () => {
    await using room = await FilesRoom.start()
    writeFileSync(room.at('large'), 'old words '.repeat(200_000))
    const [result] = (await room.send('/replace', { files: [room.at('large')], pattern: 'old', newValue: 'newer' }))
      .body
    assert.deepEqual(result, { file: room.at('large'), success: true })
    assert.equal(readFileSync(room.at('large'), 'utf8'), 'newer words '.repeat(200_000))
  })

  test('POST /files/replace answers 400 for an empty text, for no files and for too many files', async () => {
    await using room = await FilesRoom.start()
    for (const body of [
      { files: ['x'], pattern: '', newValue: 'y' },
      { files: [], pattern: 'x', newValue: 'y' },
      { files: Array(1001).fill('x'), pattern: 'x', newValue: 'y' },
      { files: ['x'], pattern: 'x' },
    ]) {
      assert.equal((await room.send('/replace', body)).status, 400)
    }
  })

  test('POST /files/replace replaces a text that extends over two chunks of the file', async () => {
    const word = fc.array(fc.constantFrom('a', 'b', '.'), { maxLength: 30 }).map((letters) => letters.join(''))
    await fc.assert(
      fc.asyncProperty(fc.array(word), word.filter(Boolean), word, async (pieces, from, to) => {
        const chunks = Readable.from(pieces.filter(Boolean).map((piece) => Buffer.from(piece)))
        let text = ''
        for await (const piece of replacing(chunks, Buffer.from(from), Buffer.from(to), () => {})) text += piece
        assert.equal(
          text,
          pieces.join('').replaceAll(from, () => to),
        )
      }),
    )
  })
})
