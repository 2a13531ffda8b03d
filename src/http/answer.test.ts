import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer as createHttpServer } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { suite, test } from 'node:test'
import Type from 'typebox'
import { silentLog } from '#src/kit/log.ts'
import { Problem } from '#src/problems.ts'
import { answersWithin, type ReadAwayBounds } from './answer.ts'
import { routesOf } from './route.ts'
import { createServer } from './server.ts'
import { realClients } from './testing/real-clients.ts'

const MiB = 1024 ** 2

const route = routesOf<object, 'public'>()
const plain = { method: 'POST', needs: 'public', summary: 'a test', replies: { 200: null } } as const
const routes = [
  route({
    ...plain,
    path: '/forbidden',
    streamsBody: true,
    run: () => {
      throw new Problem('forbidden')
    },
  }),
  route({ ...plain, path: '/done', streamsBody: true, run: () => 'done' }),
  route({ ...plain, path: '/large', bodyLimit: MiB, body: Type.Object({}), run: () => undefined }),
  route({ ...plain, path: '/unauthorized', body: Type.Object({}), run: () => undefined }),
]

const serving = async () => {
  const guard = ({ url }: { url: string }) => {
    if (url === '/unauthorized') throw new Problem('unauthorized')
    return {}
  }
  const server = await createServer({
    routes,
    prefixes: [''],
    source: 'TEST',
    guard,
    log: silentLog(),
    bodyLimit: 8 * MiB,
  })
  const url = await server.listen({ port: 0, host: '127.0.0.1' })
  return { url, [Symbol.asyncDispose]: () => server.close() }
}

suite('answering a request before its whole body was read', () => {
  const refusals = [
    ['/forbidden', 403],
    ['/done', 200],
    ['/unauthorized', 401],
    ['/nowhere', 404],
  ] as const

  for (const [name, postTwice] of Object.entries(realClients)) {
    test(`${name} gets the refusal of a call whose body was not read, and can use the connection again`, async () => {
      await using server = await serving()
      const refused = [30, 700_000, 5 * MiB].flatMap((bytes) =>
        refusals.map(([path, status]) => ({ path, status, bytes, headers: { 'content-type': 'text/plain' } })),
      )
      const tooLarge = { path: '/large', status: 413, bytes: 60 * MiB, headers: { 'content-type': 'application/json' } }
      const posts = [...refused, tooLarge].map((post) => ({ ...post, url: server.url + post.path }))
      const statuses = await postTwice(posts)
      assert.deepEqual(
        posts.map(({ path, bytes }, index) => [path, bytes, statuses[index]]),
        posts.map(({ path, bytes, status }) => [path, bytes, [status, status]]),
      )
    })
  }

  test('if a server refuses thirty clients that post small forms, all thirty get the refusal', async () => {
    await using server = await serving()
    const statuses = await Promise.all(
      Array.from({ length: 30 }, async () => {
        const body = new FormData()
        body.append('file', new Blob(['x'.repeat(30)]), 'x')
        const reply = await fetch(`${server.url}/forbidden`, { method: 'POST', body })
        await reply.text()
        return reply.status
      }),
    )
    assert.deepEqual(statuses, Array(30).fill(403))
  })
})

suite('reading and discarding the rest of a body', () => {
  const open = async (bounds: ReadAwayBounds) => {
    const server = createHttpServer({ ServerResponse: answersWithin(bounds) }, (_request, response) => {
      response.writeHead(403, { 'content-length': 2 }).end('no')
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const socket: Socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
    let heard = ''
    socket.setEncoding('latin1').on('data', (text) => {
      heard += text
    })
    const errors: unknown[] = []
    socket.on('error', (error: NodeJS.ErrnoException) => errors.push(error.code))
    await once(socket, 'connect')
    return {
      socket,
      errors,
      heard: () => heard,
      answered: async () => {
        while (!heard.endsWith('no')) await once(socket, 'data')
      },
      [Symbol.asyncDispose]: async () => {
        socket.destroy()
        server.close()
        await once(server, 'close')
      },
    }
  }
  const bounds: ReadAwayBounds = { mostBytes: MiB, longestMs: 60_000, silentMs: 60_000 }
  const head = (length: number, more = '') => `POST / HTTP/1.1\r\nhost: a\r\ncontent-length: ${length}\r\n${more}\r\n`

  test('the unread part of a refused body is discarded, and the next call on the connection is answered', async () => {
    await using one = await open(bounds)
    one.socket.write(`${head(MiB)}x`)
    await one.answered()
    assert.doesNotMatch(one.heard(), /connection: close/i)
    one.socket.write('x'.repeat(MiB - 1))
    one.socket.write(head(0))
    while (one.heard().split('403 Forbidden').length < 3) await once(one.socket, 'data')
  })

  test('if the unread part of a refused body is too long to discard, the answer has `Connection: close`', async () => {
    await using one = await open(bounds)
    one.socket.write(`${head(4 * MiB)}x`)
    await one.answered()
    assert.match(one.heard(), /connection: close/i)
    const closed = new Promise((resolve) => one.socket.once('close', resolve))
    one.socket.write('x'.repeat(2 * MiB))
    await closed
  })

  test('after `Connection: close`, the server still reads the body, so that the connection is not reset', async () => {
    await using one = await open(bounds)
    one.socket.write(`${head(MiB, 'connection: close\r\n')}x`)
    await one.answered()
    const closed = once(one.socket, 'close')
    one.socket.write('x'.repeat(MiB - 1))
    await closed
    assert.deepEqual(one.errors, [])
  })

  test('if the unread part of a refused body does not arrive in time, the server closes the connection', async () => {
    await using one = await open({ ...bounds, silentMs: 50 })
    const closed = once(one.socket, 'close')
    one.socket.write(`${head(MiB)}x`)
    await one.answered()
    await closed
  })

  test('the server discards an endless request body only up to a limit, and then closes its connection', async () => {
    await using one = await open(bounds)
    const closed = new Promise((resolve) => one.socket.once('close', resolve))
    one.socket.write('POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n')
    await one.answered()
    const piece = `10000\r\n${'x'.repeat(0x10000)}\r\n`
    const more = () => {
      while (one.socket.writable && one.socket.write(piece));
    }
    one.socket.on('drain', more)
    more()
    await closed
  })

  test('if the server cannot read the body of a call, the client still gets the answer', async () => {
    const server = createHttpServer({ ServerResponse: answersWithin({ ...bounds, silentMs: 20 }) })
    server.on('request', async (request, response) => {
      try {
        for await (const _ of request.iterator({ destroyOnReturn: false })) request.emit('error', new Error('too slow'))
      } catch {
        // If `for await` over a request fails, Node sets `request.socket` to null.
        assert.equal(request.socket, null)
        response.writeHead(408, { connection: 'close' }).end('too slow')
      }
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
    try {
      socket.write(`${head(MiB)}x`)
      let heard = ''
      for await (const piece of socket) heard += piece
      assert.match(heard, /^HTTP\/1\.1 408 [\s\S]*too slow/)
      // Wait longer than `silentMs`, so that a timer that the server has left running would fire during the test.
      await new Promise((resolve) => setTimeout(resolve, 100))
    } finally {
      socket.destroy()
      server.close()
    }
  })

  test('a refused client that waits for 100 Continue is disconnected, because its body may never come', async () => {
    const server = createHttpServer({ ServerResponse: answersWithin(bounds) })
    server.on('checkContinue', (_request, response) => response.writeHead(403).end('no'))
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
    try {
      socket.end(head(5, 'expect: 100-continue\r\n'))
      let heard = ''
      for await (const piece of socket) heard += piece
      assert.match(heard, /^HTTP\/1\.1 403 [\s\S]*connection: close/i)
    } finally {
      socket.destroy()
      server.close()
    }
  })
})
