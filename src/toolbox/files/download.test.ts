import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, readFileSync, truncateSync, writeFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import { suite, test } from 'node:test'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Files } from '../agent/agent.ts'
import { until } from '../agent/testing/native-agent.ts'
import { bulkDownload } from './bulk-download.ts'
import { FilesRoom, refusal } from './testing/files-room.ts'

/** A file in sysfs. Its reported size is 4096 bytes, but its contents are shorter. */
const loopbackMtu = '/sys/class/net/lo/mtu'
const sizeless = { skip: !existsSync('/proc/kallsyms') && 'needs /proc/kallsyms' }
const sum = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')

suite('GET /files/download', () => {
  test('GET /files/download answers 200 with the contents, their length and a file name', async () => {
    await using room = await FilesRoom.start()
    const bytes = Buffer.from([0, 255, 13, 10, 128])
    writeFileSync(room.at('bin é".dat'), bytes)
    const { status, headers, bytes: got } = await room.get('/download', { path: room.at('bin é".dat') })
    assert.deepEqual(
      [status, headers['content-type'], headers['content-length']],
      [200, 'application/octet-stream', '5'],
    )
    assert.deepEqual(got, bytes)
    assert.equal(
      headers['content-disposition'],
      `attachment; filename="bin _\\".dat"; filename*=UTF-8''bin%20%C3%A9%22.dat`,
    )
    assert.equal(headers['accept-ranges'], 'bytes')
    writeFileSync(room.at('empty'), '')
    assert.equal((await room.get('/download', { path: room.at('empty') })).headers['content-length'], '0')
    assert.match((await room.get('/download', { path: '/proc/self/status' })).text, /alcove-agent/)
  })

  test('GET /files/download answers 206 for one range, 416 for a range after the end, 200 for other Range headers', async () => {
    await using room = await FilesRoom.start()
    writeFileSync(room.at('ten'), '0123456789')
    const ask = (range: string) => room.get('/download', { path: room.at('ten') }, { range })
    for (const [range, text, said] of [
      ['bytes=2-4', '234', 'bytes 2-4/10'],
      ['bytes=0-0', '0', 'bytes 0-0/10'],
      ['bytes=7-', '789', 'bytes 7-9/10'],
      ['bytes=8-1000', '89', 'bytes 8-9/10'],
      ['bytes=-3', '789', 'bytes 7-9/10'],
      ['bytes=-1000', '0123456789', 'bytes 0-9/10'],
    ] as const) {
      const { status, text: got, headers } = await ask(range)
      assert.deepEqual([status, got, headers['content-range']], [206, text, said], range)
      assert.equal(headers['content-length'], String(text.length))
    }
    for (const range of ['bytes=10-', 'bytes=10-12', 'bytes=-0', `bytes=${'9'.repeat(40)}-`]) {
      const reply = await ask(range)
      assert.deepEqual(
        [...refusal(reply), reply.headers['content-range']],
        [416, 'RANGE_NOT_SATISFIABLE', 'bytes */10'],
        range,
      )
    }
    for (const range of ['bytes=4-2', 'bytes=0-1,3-4', 'lines=1-2', 'bytes=-', 'bytes=a-b', '']) {
      assert.deepEqual([(await ask(range)).status, (await ask(range)).text], [200, '0123456789'], range)
    }
  })

  test('HEAD /files/download answers with the file’s size and without its contents', async () => {
    await using room = await FilesRoom.start()
    writeFileSync(room.at('ten'), '0123456789')
    const { status, headers, bytes } = await room.settle(
      room.begin('HEAD', '/download', { path: room.at('ten') }).end(),
    )
    assert.deepEqual([status, headers['content-length'], bytes.length], [200, '10', 0])
  })

  test('a download of a sysfs file reports the real size of the contents, and so does HEAD', async () => {
    await using room = await FilesRoom.start()
    const text = readFileSync(loopbackMtu, 'utf8')
    const whole = await room.get('/download', { path: loopbackMtu })
    assert.deepEqual([whole.status, whole.headers['content-length'], whole.text], [200, String(text.length), text])
    const head = await room.settle(room.begin('HEAD', '/download', { path: loopbackMtu }).end())
    assert.deepEqual([head.status, head.headers['content-length']], [200, String(text.length)])
    const last = await room.get('/download', { path: loopbackMtu }, { range: 'bytes=-2' })
    assert.deepEqual([last.status, last.text], [206, text.slice(-2)])
    assert.equal(last.headers['content-range'], `bytes ${text.length - 2}-${text.length - 1}/${text.length}`)
    assert.equal((await room.get('/download', { path: '/proc/version' }, { range: 'bytes=-1' })).text, '\n')
  })

  test('GET /files/download answers 422 for a file above 1 MiB whose size is reported as 0', sizeless, async () => {
    await using room = await FilesRoom.start()
    const reply = await room.get('/download', { path: '/proc/kallsyms' })
    assert.deepEqual(refusal(reply), [422, 'UNPROCESSABLE_ENTITY'])
    assert.match(reply.body.message, /too large/)
  })

  test('if a caller closes a download, the process in the sandbox that reads the file ends', async () => {
    await using room = await FilesRoom.start()
    writeFileSync(room.at('large'), '')
    truncateSync(room.at('large'), 256 * 1024 * 1024)
    const outgoing = room.begin('GET', '/download', { path: room.at('large') }).end()
    const [answer] = (await once(outgoing, 'response')) as [IncomingMessage]
    await once(answer, 'readable')
    const { pid } = room.native
    const children = () => readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim()
    assert.notEqual(children(), '')
    outgoing.destroy()
    await until(() => children() === '', 'no process left')
  })
})

suite('POST /files/bulk-download', () => {
  test('if a caller closes a bulk download, a file that is open but not yet sent is closed', async () => {
    const stream = Readable.from([Buffer.from('x')])
    const files = { read: async () => ({ length: 1, stream }) } as unknown as Files
    const reply = { header: () => reply } as unknown as FastifyReply
    // Nobody reads this answer. The file's long name fills the answer's buffer, so no contents of the file are sent.
    const answer = bulkDownload(files, ['x'.repeat(200_000)], {} as FastifyRequest, reply)
    await once(answer, 'readable')
    await once(answer.destroy(), 'close')
    assert.equal(stream.destroyed, true)
  })

  test('POST /files/bulk-download answers 200 with one part per path, in order; a failed path’s part has the error', async () => {
    await using room = await FilesRoom.start()
    const [one, missing, odd, empty] = ['one', 'missing', 'odd é.txt', 'empty'].map((name) => room.at(name)) as [
      string,
      string,
      string,
      string,
    ]
    writeFileSync(one, 'one\r\n--alcove')
    writeFileSync(odd, Buffer.alloc(200_000, 'odd'))
    writeFileSync(empty, '')
    const reply = await room.send('/bulk-download', { paths: [one, missing, odd, empty, room.directory] })
    assert.equal(reply.status, 200)
    assert.match(reply.headers['content-type']!, /^multipart\/form-data; boundary=/)
    const form = await new Response(new Uint8Array(reply.bytes), {
      headers: { 'content-type': reply.headers['content-type']! },
    }).formData()
    assert.deepEqual([...form.keys()], ['file', 'error', 'file', 'file', 'error'])
    const files = form.getAll('file') as File[]
    assert.equal(await files[0]!.text(), 'one\r\n--alcove')
    assert.equal(sum(Buffer.from(await files[1]!.arrayBuffer())), sum(readFileSync(odd)))
    assert.equal(files[2]!.size, 0)
    const [gone, directory] = await Promise.all(
      (form.getAll('error') as File[]).map(async (part) => JSON.parse(await part.text())),
    )
    assert.deepEqual([gone.statusCode, gone.code, gone.source], [404, 'FILE_NOT_FOUND', 'DAYTONA_DAEMON'])
    assert.equal(directory.code, 'INVALID_FILE_PATH')
    assert.deepEqual(
      [...reply.text.matchAll(/^Content-Length: (\d+)/gm)].map(([, length]) => Number(length)).slice(2, 4),
      [200_000, 0],
    )
  })

  test('a bulk download contains all files completely, even a file whose reported size is wrong', async () => {
    await using room = await FilesRoom.start()
    writeFileSync(room.at('behind'), 'behind')
    const { headers, bytes } = await room.send('/bulk-download', { paths: [loopbackMtu, room.at('behind')] })
    const form = await new Response(new Uint8Array(bytes), {
      headers: { 'content-type': headers['content-type']! },
    }).formData()
    assert.deepEqual(await Promise.all((form.getAll('file') as File[]).map((file) => file.text())), [
      readFileSync(loopbackMtu, 'utf8'),
      'behind',
    ])
  })

  test('each part of a bulk download has the requested path as its name, even with special characters', async () => {
    await using room = await FilesRoom.start()
    const path = room.at('o"d\\d é\r\n\'(*).txt')
    writeFileSync(path, 'x')
    const { text } = await room.send('/bulk-download', { paths: [path] })
    const [, simple, full] = /name="file"; filename="(.*)"; filename\*=UTF-8''([\w%.-]+)\r\n/.exec(text) ?? []
    assert.equal(decodeURIComponent(full!), path)
    assert.equal(simple, `${room.directory}/o\\"d\\\\d é__'(*).txt`)
  })

  test('POST /files/bulk-download answers 400 without paths', async () => {
    await using room = await FilesRoom.start()
    assert.equal((await room.send('/bulk-download', { paths: [] })).status, 400)
    assert.equal((await room.send('/bulk-download', {})).status, 400)
  })
})
