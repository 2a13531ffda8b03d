import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { suite, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import fastify from 'fastify'
import { boundUnread, cutOffIdle } from './unread-answers.ts'

// Size of an answer. The kernel buffers less than this for a client that reads nothing.
const answerBytes = 24 * 1024 ** 2

const serving = async (bounds: Omit<Parameters<typeof boundUnread>[1], 'ownerOf'>) => {
  const server = fastify()
  server.get('/:owner/large', async () => 'x'.repeat(answerBytes))
  server.get('/silent-at-first', async (_request, reply) => {
    cutOffIdle(reply.hijack().raw, bounds.idleMs)
    reply.raw.write('x')
    await pause(1000)
    reply.raw.end('x'.repeat(answerBytes))
  })
  boundUnread(server, { ...bounds, ownerOf: ({ params }) => (params as { owner: string }).owner })
  await server.listen({ host: '127.0.0.1', port: 0 })
  const { port } = server.server.address() as AddressInfo
  const sockets: Socket[] = []
  return {
    /** Sends a request and does not read the answer. */
    ask: async (path: string) => {
      const socket = connect(port, '127.0.0.1').pause()
      socket.on('error', () => {})
      sockets.push(socket)
      await once(socket, 'connect')
      socket.write(`GET ${path} HTTP/1.1\r\nhost: a\r\n\r\n`)
      await pause(100)
      return socket
    },
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy()
      await server.close()
    },
  }
}

/**
 * Reads an answer until the answer or its connection ends, and returns the number of bytes. Waits for `pauseMs` after each 1.5
 * MiB, at most sixteen times.
 */
const read = async (socket: Socket, pauseMs = 0): Promise<number> => {
  let bytes = 0
  let untilPause = answerBytes / 16
  try {
    for await (const piece of socket) {
      bytes += piece.length
      if (bytes > answerBytes) break
      if (bytes < untilPause) continue
      untilPause += answerBytes / 16
      await pause(pauseMs)
    }
  } catch {
    // The server has cut the answer off by closing the connection. Return how many bytes have come until then.
  }
  return bytes
}

suite('answers that are read slowly or not at all', () => {
  test('the server cuts off an answer of which the client reads nothing, but not one that is read slowly', async () => {
    await using server = await serving({ idleMs: 2500 })
    const slow = await server.ask('/a/large')
    const idle = await server.ask('/a/large')
    // Node checks after each `idleMs` whether bytes were read. The slow reader needs longer than `idleMs` for the whole answer. But
    // each of its pauses is far shorter.
    assert.ok((await read(slow, 350)) > answerBytes)
    await pause(1000)
    assert.ok((await read(idle)) < answerBytes)
  })

  test('an answer that the server begins to send only after a while is not cut off', async () => {
    await using server = await serving({ idleMs: 400 })
    assert.ok((await read(await server.ask('/silent-at-first'))) > answerBytes)
  })

  test('if unread answers exceed the limit, the oldest answer of the owner with the most bytes is cut off', async () => {
    await using server = await serving({ mostBytes: 3.5 * answerBytes })
    const frugal = await server.ask('/a/large')
    const first = await server.ask('/b/large')
    const second = await server.ask('/b/large')
    const newcomer = await server.ask('/c/large')
    assert.ok((await read(first)) < answerBytes)
    const third = await server.ask('/b/large')
    assert.ok((await read(second)) < answerBytes)
    for (const whole of [frugal, newcomer, third]) assert.ok((await read(whole)) > answerBytes)
  })

  test('bytes that a client has read of an answer no longer count towards the limit of unread answers', async () => {
    await using server = await serving({ mostBytes: 2.5 * answerBytes })
    for (let round = 0; round < 2; round++) {
      const [first, second] = [await server.ask('/a/large'), await server.ask('/a/large')]
      assert.ok((await read(first)) > answerBytes)
      assert.ok((await read(second)) > answerBytes)
    }
  })
})
