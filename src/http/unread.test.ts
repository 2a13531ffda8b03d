import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { suite, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import fastify from 'fastify'
import { boundUnread } from './unread.ts'

// More than the kernel takes for a reader who takes nothing.
const answerBytes = 24 * 1024 ** 2

const serving = async (bounds: Parameters<typeof boundUnread>[1]) => {
  const server = fastify()
  server.get('/large', async () => 'x'.repeat(answerBytes))
  server.get('/small', async () => 'x')
  boundUnread(server, bounds)
  await server.listen({ host: '127.0.0.1', port: 0 })
  const { port } = server.server.address() as AddressInfo
  const sockets: Socket[] = []
  return {
    /** Its answer waits until somebody reads. */
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

/** How many bytes come until all have, or the connection ends; `pauseMs` after each piece. */
const read = async (socket: Socket, pauseMs = 0): Promise<number> => {
  let bytes = 0
  try {
    for await (const piece of socket) {
      bytes += piece.length
      if (bytes > answerBytes) break
      await pause(pauseMs)
    }
  } catch {
    // Cut off.
  }
  return bytes
}

suite('answers that their readers do not take', () => {
  test('one of which nothing is taken is cut off, one that is read slowly is not', async () => {
    await using server = await serving({ idleMs: 400 })
    const slow = await server.ask('/large')
    const idle = await server.ask('/large')
    const slowly = read(slow, 4)
    await pause(1500)
    assert.ok((await read(idle)) < answerBytes)
    assert.ok((await slowly) > answerBytes)
  })

  test('where all together are too large, those that have waited for longest give way', async () => {
    await using server = await serving({ mostBytes: 2.5 * answerBytes })
    const [first, second] = [await server.ask('/large'), await server.ask('/large')]
    const third = await server.ask('/large')
    assert.ok((await read(first)) < answerBytes)
    assert.ok((await read(second)) > answerBytes)
    assert.ok((await read(third)) > answerBytes)
    // What was taken counts no more.
    const [fourth, fifth] = [await server.ask('/large'), await server.ask('/large')]
    assert.ok((await read(fourth)) > answerBytes)
    assert.ok((await read(fifth)) > answerBytes)
  })
})
