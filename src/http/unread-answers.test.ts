import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { suite, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import fastify from 'fastify'
import { boundUnread, cutOffIdle } from './unread-answers.ts'

// More than the kernel takes for a reader who takes nothing.
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
    /** Asks, and leaves the answer unread. */
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

/** How many bytes come until all have, or the connection ends; `pauseMs` after each 1.5 MiB, sixteen times. */
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
    // Cut off.
  }
  return bytes
}

suite('answers that their readers do not take', () => {
  test('one of which nothing is taken is cut off, one that is read slowly is not', async () => {
    await using server = await serving({ idleMs: 2500 })
    const slow = await server.ask('/a/large')
    const idle = await server.ask('/a/large')
    // Node looks once in each time whether any was taken: what is idle ends within two of them. This one takes longer in
    // all, and far shorter between what is taken.
    assert.ok((await read(slow, 350)) > answerBytes)
    await pause(1000)
    assert.ok((await read(idle)) < answerBytes)
  })

  test('one that has nothing to take for a while is not', async () => {
    await using server = await serving({ idleMs: 400 })
    assert.ok((await read(await server.ask('/silent-at-first'))) > answerBytes)
  })

  test('where all together are too large, who has most of it gives way, with what has waited for longest', async () => {
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

  test('what was taken counts no more', async () => {
    await using server = await serving({ mostBytes: 2.5 * answerBytes })
    for (let round = 0; round < 2; round++) {
      const [first, second] = [await server.ask('/a/large'), await server.ask('/a/large')]
      assert.ok((await read(first)) > answerBytes)
      assert.ok((await read(second)) > answerBytes)
    }
  })
})
