import assert from 'node:assert/strict'
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { suite, test } from 'node:test'
import { needsRoot } from '#test/needs-root.ts'
import { FilesRoom, type Reply } from './testing/files-room.ts'

const missing = (path: string) => `file not found: ${path}. There is no such file or directory.`
const forbidden = (path: string) => `permission denied: ${path}. The sandbox user may not do that with this file.`
const noDirectory = (path: string) => `${path}: A part of this path is not a directory.`
const isDirectory = (path: string) => `${path}: This is a directory.`

type Place = {
  room: FilesRoom
  none: string
  file: string
  below: string
  directory: string
  closed: string
  inClosed: string
}
type Call = readonly [what: string, call: (place: Place) => Promise<Reply>, message: (place: Place) => string]

const withPlace = async (work: (place: Place) => Promise<void>, user?: string) => {
  await using room = await FilesRoom.start(user === undefined ? {} : { user })
  const directory = room.openDirectory('directory')
  const file = room.at('directory', 'file')
  writeFileSync(file, 'text')
  chmodSync(file, 0o666)
  const closed = room.at('closed')
  mkdirSync(closed)
  writeFileSync(room.at('closed', 'secret'), 'text')
  chmodSync(closed, 0o700)
  const place = {
    room,
    directory,
    file,
    closed,
    none: room.at('directory', 'none'),
    below: `${file}/below`,
    inClosed: room.at('closed', 'secret'),
  }
  await work(place)
}

const uploaded = ({ room }: Place, ...paths: string[]) => {
  const form = new FormData()
  paths.forEach((path, at) => {
    form.append(`files[${at}].path`, path)
    form.append(`files[${at}].file`, new Blob(['x']), 'x')
  })
  return room.form('/bulk-upload', {}, form)
}

const everyCall: readonly Call[] = [
  ['a list', (p) => p.room.get('', { path: p.none }), (p) => missing(p.none)],
  ['a list of a file', (p) => p.room.get('', { path: p.file }), (p) => noDirectory(p.file)],
  ['info', (p) => p.room.get('/info', { path: p.none }), (p) => missing(p.none)],
  ['info below a file', (p) => p.room.get('/info', { path: p.below }), (p) => noDirectory(p.below)],
  ['a download', (p) => p.room.get('/download', { path: p.none }), (p) => missing(p.none)],
  ['a download of a directory', (p) => p.room.get('/download', { path: p.directory }), (p) => isDirectory(p.directory)],
  [
    'a range beyond the end',
    (p) => p.room.get('/download', { path: p.file }, { range: 'bytes=9-' }),
    (p) => `${p.file}: The file has 4 bytes.`,
  ],
  ['a search', (p) => p.room.get('/search', { path: p.none, pattern: 'x' }), (p) => missing(p.none)],
  ['a search for text', (p) => p.room.get('/find', { path: p.none, pattern: 'x' }), (p) => missing(p.none)],
  [
    'a search for text in a device',
    (p) => p.room.get('/find', { path: '/dev/null', pattern: 'x' }),
    () => '/dev/null: This is neither a regular file nor a directory.',
  ],
  ['an upload to a directory', (p) => p.room.upload(p.directory, 'x'), (p) => isDirectory(p.directory)],
  ['many uploads', (p) => uploaded(p, p.directory, p.file), (p) => isDirectory(p.directory)],
  ['a new directory', (p) => p.room.post('/folder', { path: p.below }), (p) => noDirectory(p.below)],
  ['a delete', (p) => p.room.delete({ path: p.none }), (p) => missing(p.none)],
  ['a delete of a directory', (p) => p.room.delete({ path: p.directory }), (p) => isDirectory(p.directory)],
  ['rights', (p) => p.room.post('/permissions', { path: p.none, mode: '600' }), (p) => missing(p.none)],
  [
    'an unknown owner',
    (p) => p.room.post('/permissions', { path: p.file, owner: 'nobody-at-all' }),
    (p) => `${p.file}: There is no such owner or group in this sandbox.`,
  ],
  [
    'a move of what is not there',
    (p) => p.room.post('/move', { source: p.none, destination: `${p.none}-2` }),
    (p) => missing(p.none),
  ],
  [
    'a move into a directory that is not there',
    (p) => p.room.post('/move', { source: p.file, destination: `${p.none}/x` }),
    (p) => missing(`${p.none}/x`),
  ],
  [
    'a move below a file',
    (p) => p.room.post('/move', { source: p.directory, destination: p.below }),
    (p) => noDirectory(p.below),
  ],
  [
    'a move onto something',
    (p) => p.room.post('/move', { source: p.file, destination: p.closed }),
    (p) => `${p.closed}: The destination already exists.`,
  ],
  [
    'a move into itself',
    (p) => p.room.post('/move', { source: p.directory, destination: `${p.directory}/x` }),
    (p) => `${p.directory} to ${p.directory}/x: A directory cannot be moved into itself.`,
  ],
]

suite('errors about files name the path', () => {
  for (const [what, call, message] of everyCall) {
    test(`an error of a file call names the path as the caller wrote it: ${what}`, () =>
      withPlace(async (place) => {
        const { status, body } = await call(place)
        assert.ok(status >= 400)
        assert.equal(body.message, message(place))
      }))
  }

  test('each failed result of POST /files/replace has an error with the path of its file', () =>
    withPlace(async (place) => {
      const { room, none, directory, file } = place
      writeFileSync(room.at('binary'), 'a\0b')
      const files = [none, directory, room.at('binary'), file]
      const { body } = await room.send('/replace', { files, pattern: 'text', newValue: 'new' })
      assert.deepEqual(
        body.map(({ error }: { error?: string }) => error),
        [missing(none), isDirectory(directory), `${files[2]}: This is a binary file; nothing was replaced.`, undefined],
      )
    }))

  test('each failed part of POST /files/bulk-download has an error with the path of its file', () =>
    withPlace(async ({ room, none, directory }) => {
      const { text } = await room.send('/bulk-download', { paths: [none, directory] })
      assert.ok(text.includes(JSON.stringify(missing(none))), text)
      assert.ok(text.includes(JSON.stringify(isDirectory(directory))), text)
    }))

  test('an error of a file call names the path only once, and a very long path in part', () =>
    withPlace(async ({ room }) => {
      symlinkSync('loop', room.at('loop'))
      const { body } = await room.get('/info', { path: room.at('loop') })
      assert.equal(body.message.split(room.at('loop')).length, 2)
      const long = await room.get('/info', { path: `/${'x'.repeat(9000)}` })
      assert.deepEqual([long.status, long.body.message.length < 1200], [400, true])
    }))

  test(
    'an error of a file call names the path if the sandbox’s user has no permission for it',
    { skip: needsRoot },
    () =>
      withPlace(async (place) => {
        const { room, inClosed, closed, file, directory } = place
        for (const [call, path] of [
          [room.get('', { path: closed }), closed],
          [room.get('/info', { path: inClosed }), inClosed],
          [room.get('/download', { path: inClosed }), inClosed],
          [room.get('/search', { path: closed, pattern: 'x' }), closed],
          [room.upload(inClosed, 'x'), inClosed],
          [uploaded(place, inClosed, file), inClosed],
          [room.post('/folder', { path: inClosed }), inClosed],
          [room.delete({ path: inClosed }), inClosed],
          [room.post('/permissions', { path: file, mode: '600' }), file],
          [room.post('/move', { source: inClosed, destination: room.at('directory', 'x') }), inClosed],
          [room.post('/move', { source: file, destination: `${closed}/x` }), `${closed}/x`],
          [room.post('/move', { source: directory, destination: room.at('x') }), `${directory} to ${room.at('x')}`],
        ] as const) {
          const { status, body } = await call
          assert.deepEqual([status, body.message], [403, forbidden(path)])
        }
      }, 'nobody'),
  )
})
