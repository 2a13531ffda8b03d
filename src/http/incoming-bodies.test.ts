import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { suite, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import fastifyWebsocket from '@fastify/websocket'
import fastify, { type FastifyReply, type FastifyRequest } from 'fastify'
import { boundIncoming } from './incoming-bodies.ts'
import { asProblem } from './render-problem.ts'

const MiB = 1024 ** 2
const key = 'dGhlIHNhbXBsZSBub25jZQ=='
const upgrade = `Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${key}\r\n\r\n`

/** Returns the head of a masked text frame (RFC 6455 §5.2). It announces `length` bytes, which do not follow. */
const frameHead = (length: number) => {
  const head = Buffer.alloc(14)
  head.set([0x81, 0xff])
  head.writeBigUInt64BE(BigInt(length), 2)
  return head
}

type Bounds = Partial<Parameters<typeof boundIncoming>[1]>

const serving = async (bounds: Bounds) => {
  const server = fastify({ bodyLimit: 64 * MiB })
  await server.register(fastifyWebsocket, { options: { maxPayload: 64 * MiB } })
  server.setErrorHandler((error, _request, reply) => reply.status(asProblem(error).status).send())
  const ownerOf = ({ params }: { params: unknown }) => (params as { owner: string }).owner
  boundIncoming(server, { ownerOf, lookMs: 20, ...bounds })
  await server.register(async (scope) => {
    scope.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body))
    scope.post('/:owner/body', async ({ body }) => `${(body as Buffer).length} bytes`)
    scope.get('/:owner/socket', { websocket: true }, (socket) => {
      socket.on('message', (data) => socket.send(`${(data as Buffer).length} bytes`))
    })
  })
  await server.register(async (scope) => {
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser('*', (_request, _body, done) => done(null, undefined))
    const read = async ({ raw }: FastifyRequest, reply: FastifyReply) => {
      reply.hijack()
      let bytes = 0
      try {
        for await (const piece of raw) bytes += piece.length
        reply.raw.end(`${bytes} bytes`)
      } catch {}
    }
    scope.post('/:owner/own-reader', read)
    scope.get('/late', async () => {
      await pause(100)
      return 'late'
    })
    scope.post('/:owner/stream', { config: { streamsBody: true } }, read)
  })
  await server.listen({ host: '127.0.0.1', port: 0 })
  const { port } = server.server.address() as AddressInfo
  const sockets: Socket[] = []
  const open = async (text: string) => {
    const socket = connect(port, '127.0.0.1')
    socket.on('error', () => {})
    sockets.push(socket)
    await once(socket, 'connect')
    socket.write(text)
    return socket
  }
  return {
    open,
    /** Sends the head of a request with a body, but no byte of the body. */
    body: (owner: string, length: number, path = 'body') =>
      open(`POST /${owner}/${path} HTTP/1.1\r\nHost: a\r\nContent-Type: a/b\r\nContent-Length: ${length}\r\n\r\n`),
    socket: async (owner: string) => {
      const socket = await open(`GET /${owner}/socket HTTP/1.1\r\nHost: a\r\n${upgrade}`)
      await once(socket, 'data')
      return socket
    },
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy()
      await server.close()
    },
  }
}

/** Sends `bytes` bytes of the body and returns the answer. Undefined: the server has closed the connection. */
const answerTo = async (socket: Socket, bytes: number): Promise<string | undefined> => {
  const over = new Promise<undefined>((resolve) => socket.once('close', () => resolve(undefined)))
  const answer = once(socket, 'data').then(([data]) => String(data))
  answer.catch(() => {})
  if (!socket.destroyed) socket.write(Buffer.alloc(bytes))
  return await Promise.race([answer, over])
}

const isCutOff = async (socket: Socket): Promise<true> => {
  if (!socket.closed) await once(socket, 'close')
  return true
}

suite('request bodies and WebSocket frames that have not arrived completely', () => {
  test('a call gets 408 if its body comes below the minimum speed; a WebSocket may be silent', async () => {
    await using server = await serving({ slow: { spanMs: 300 } })
    const silent = await server.body('a', MiB)
    silent.write(Buffer.alloc(1000))
    const small = await server.body('a', 10)
    const slow = await server.body('a', 100_000)
    const socket = await server.socket('a')
    socket.write(frameHead(1000))
    const trickling = await server.body('a', 10_000)
    const refusals = [answerTo(silent, 0), answerTo(small, 0), answerTo(trickling, 0)]
    for (let sent = 0; sent < 90_000; sent += 10_000) {
      slow.write(Buffer.alloc(10_000))
      // Send 10 bytes every 100 ms: pieces come often, but the body is below the minimum speed.
      if (!trickling.destroyed) trickling.write(Buffer.alloc(10))
      await pause(100)
    }
    for (const refusal of await Promise.all(refusals))
      assert.match(refusal ?? '', /^HTTP\/1.1 408 .*connection: close/is)
    trickling.end()
    for (const refused of [silent, small, trickling]) assert.ok(await isCutOff(refused))
    assert.match((await answerTo(slow, 10_000)) ?? '', /100000 bytes/)
    assert.match((await answerTo(socket, 1000)) ?? '', /1000 bytes/)
  })

  test('the server’s default time limit applies to every body, unless a route streams the body', async () => {
    await using server = await serving({ slow: { spanMs: 300 } })
    const streamed = await server.body('a', 1000, 'stream')
    const silent = await server.body('a', 1000, 'own-reader')
    silent.write(Buffer.alloc(999))
    assert.equal(await answerTo(silent, 0), undefined)
    assert.match((await answerTo(streamed, 1000)) ?? '', /1000 bytes/)
  })

  test('the time limit for a request body also applies to the second of two pipelined calls', async () => {
    await using server = await serving({ slow: { spanMs: 300 } })
    const call = 'POST /a/body HTTP/1.1\r\nHost: a\r\nContent-Type: a/b\r\nContent-Length: 10\r\n\r\n'
    const socket = await server.open(`GET /late HTTP/1.1\r\nHost: a\r\n\r\n${call}`)
    assert.match((await answerTo(socket, 1)) ?? '', /late/)
    assert.match((await answerTo(socket, 1)) ?? '', /^HTTP\/1.1 408 /)
  })

  test('if unfinished bodies exceed the limit, the owner with the most bytes gets 503 for its oldest body', async () => {
    await using server = await serving({ mostBytes: 9 * MiB })
    const frugal = await server.body('a', 3 * MiB)
    frugal.write(Buffer.alloc(2 * MiB))
    const socket = await server.socket('b')
    socket.write(Buffer.concat([frameHead(6 * MiB), Buffer.alloc(4 * MiB)]))
    const first = await server.body('b', 5 * MiB)
    first.write(Buffer.alloc(2 * MiB))
    await pause(200)
    const newcomer = await server.body('c', 3 * MiB)
    newcomer.write(Buffer.alloc(2 * MiB))
    assert.ok(await isCutOff(socket))
    const refusal = answerTo(first, 2 * MiB)
    const second = await server.body('b', 3 * MiB)
    second.write(Buffer.alloc(2 * MiB))
    assert.match((await refusal) ?? '', /^HTTP\/1.1 503 /)
    for (const whole of [frugal, second, newcomer]) assert.match((await answerTo(whole, MiB)) ?? '', /3145728 bytes/)
  })

  test('a complete body or WebSocket frame no longer counts towards the limit of bytes of unfinished bodies', async () => {
    await using server = await serving({ mostBytes: 3 * MiB })
    const socket = await server.socket('a')
    for (let round = 0; round < 4; round++) {
      const body = await server.body('a', 2 * MiB)
      assert.match((await answerTo(body, 2 * MiB)) ?? '', /2097152 bytes/)
      socket.write(frameHead(2 * MiB))
      assert.match((await answerTo(socket, 2 * MiB)) ?? '', /2097152 bytes/)
      await pause(60)
    }
  })
})
