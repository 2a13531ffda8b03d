import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempDisposable } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { WebSocket } from 'ws'
import { silentLog } from '#src/kit/log.ts'
import { routesOf } from './route.ts'
import { createServer } from './server.ts'

const open = routesOf<object, 'public'>()({
  method: 'GET',
  path: '/open',
  needs: 'public',
  summary: 'is open',
  replies: { 200: null },
  run: () => undefined,
  socket: () => undefined,
})

/** Connects two ends of one unix socket, for which the kernel buffers far less than for a network connection. */
const connect = async () => {
  const directory = await mkdtempDisposable(join(tmpdir(), 'alcove-socket-'))
  const path = join(directory.path, 'server.sock')
  const server = await createServer({
    routes: [open],
    prefixes: [''],
    source: 'TEST',
    guard: () => ({}),
    log: silentLog(),
  })
  await server.listen({ path })
  const client = new WebSocket(`ws+unix://${path}:/open`)
  await once(client, 'open')
  const [held] = server.websocketServer.clients
  return {
    client,
    held: held!,
    [Symbol.asyncDispose]: async () => {
      client.terminate()
      await server.close()
      await directory.remove()
    },
  }
}

suite('pings from clients', () => {
  test('a WebSocket ping is answered with the ping’s own payload', async () => {
    await using pair = await connect()
    for (const said of ['one', 'two']) {
      pair.client.ping(said)
      assert.equal(String((await once(pair.client, 'pong'))[0]), said)
    }
  })

  test('if a client reads nothing, the server keeps only one pong for it, which answers the latest ping', async () => {
    await using pair = await connect()
    let heard = 0
    pair.held.on('ping', () => {
      heard += 1
    })
    pair.client.pause()
    for (let pings = 1; pings <= 20_000; pings++) pair.client.ping(String(pings))
    while (heard < 20_000) await pause(10)
    assert.ok(pair.held.bufferedAmount < 1000, `${pair.held.bufferedAmount} bytes`)
    const latest = new Promise((resolve) => {
      pair.client.on('pong', (data) => String(data) === '20000' && resolve(undefined))
    })
    pair.client.resume()
    await latest
  })
})
