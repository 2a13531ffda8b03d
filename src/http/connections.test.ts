import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readdir, readlink } from 'node:fs/promises'
import { Agent, createServer as createHttpServer, type IncomingMessage, request } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { suite, test } from 'node:test'
import Type from 'typebox'
import { WebSocket } from 'ws'
import { createLog } from '#src/kit/log.ts'
import { Problem } from '#src/problems.ts'
import { admitConnection, type ConnectionBounds, Connections } from './connections.ts'
import { refuseBadHttp } from './linger.ts'
import { type Route, routesOf } from './route.ts'
import { createServer } from './server.ts'

type Needs = 'public' | 'key'
type Context = { owner?: string }
const route = routesOf<Context, Needs>()
const credential = { authorization: 'Bearer key' }

/** A program for another process: it sends a whole call and then resets its connection, while the server under test is busy. */
const sendAndReset = `const socket = require('node:net').connect(Number(process.argv[1]), '127.0.0.1')
const call = 'GET /mine HTTP/1.1\\r\\nHost: x\\r\\nAuthorization: Bearer key\\r\\n\\r\\n'
socket.on('connect', () => socket.write(call, () => socket.resetAndDestroy()))`

/** Counts the open sockets of this process. Open files are left out, because the test runner opens and closes some. */
const countSockets = async (): Promise<number> => {
  const descriptors = await readdir('/proc/self/fd')
  const targets = await Promise.all(descriptors.map((name) => readlink(`/proc/self/fd/${name}`).catch(() => '')))
  return targets.filter((target) => target.startsWith('socket:')).length
}

/**
 * Starts a server with low limits. A call to `/held` is answered when the test calls `release`. The header `for` names the
 * owner.
 */
const start = async (bounds: ConnectionBounds) => {
  let calls = 0
  const lines: string[] = []
  const begun: PromiseWithResolvers<void>[] = []
  const released = Promise.withResolvers<void>()
  const parts = { method: 'GET', summary: 'is called', replies: { 200: Type.String() } } as const
  const routes: Route<Context, Needs>[] = [
    route({ ...parts, path: '/public', needs: 'public', run: () => 'public' }),
    route({ ...parts, path: '/mine', needs: 'key', run: () => 'mine' }),
    route({
      ...parts,
      path: '/held',
      needs: 'key',
      run: async () => {
        begun.shift()?.resolve()
        await released.promise
        return 'held'
      },
    }),
    route({ ...parts, path: '/socket', needs: 'key', run: () => '', socket: (ws) => void ws.send('hello') }),
    route({
      ...parts,
      path: '/late',
      needs: 'public',
      run: () => '',
      socket: (ws, { request }) => {
        ws.once('message', () => {
          admitConnection(request.raw.socket, 'late')
          ws.send('signed in')
        })
      },
    }),
    route({
      ...parts,
      method: 'POST',
      path: '/public',
      needs: 'public',
      run: () => 'sent',
    }),
  ]
  const server = await createServer<Context, Needs>({
    routes,
    prefixes: [''],
    source: 'TEST',
    guard: ({ headers }, { needs }) => {
      calls += 1
      if (needs !== 'public' && headers.authorization !== credential.authorization) throw new Problem('unauthorized')
      return typeof headers.for === 'string' ? { owner: headers.for } : {}
    },
    ownerOf: ({ owner }) => owner,
    log: createLog('test', 'info', { write: (line) => void lines.push(line) }),
    connections: new Connections(bounds),
  })
  await server.listen({ port: 0, host: '127.0.0.1' })
  const { port } = server.server.address() as AddressInfo
  const clients = new Set<Socket>()
  return {
    port,
    /** Number of calls whose head the server has read. */
    calls: () => calls,
    lines,
    release: () => released.resolve(),
    nextHeld: () => {
      const next = Promise.withResolvers<void>()
      begun.push(next)
      return next.promise
    },
    /** Opens a connection. Resolves when the server has accepted it. */
    open: async (localAddress = '127.0.0.1') => {
      const taken = once(server.server, 'connection')
      const socket = connect({ port, host: '127.0.0.1', localAddress })
      socket.on('error', () => {})
      clients.add(socket)
      await Promise.all([taken, once(socket, 'connect')])
      return socket
    },
    openSockets: async () => {
      const counted = Promise.withResolvers<number>()
      server.server.getConnections((error, count) => (error ? counted.reject(error) : counted.resolve(count)))
      return await counted.promise
    },
    [Symbol.asyncDispose]: async () => {
      released.resolve()
      for (const client of clients) client.destroy()
      for (const client of server.websocketServer.clients) client.terminate()
      server.server.closeAllConnections()
      await server.close()
    },
  }
}

type Started = Awaited<ReturnType<typeof start>>

const call = async (
  { port }: Started,
  path: string,
  {
    localAddress = '127.0.0.1',
    agent,
    headers = credential,
  }: { localAddress?: string; agent?: Agent; headers?: object } = {},
) => {
  const asked = request({ port, host: '127.0.0.1', localAddress, path, headers: { ...headers }, agent: agent ?? false })
  asked.end()
  const [reply] = (await once(asked, 'response')) as [IncomingMessage]
  reply.resume()
  await once(reply, 'end')
  return { status: reply.statusCode, isReused: asked.reusedSocket }
}

const isOpen = async (socket: Socket) => {
  if (socket.destroyed || socket.readableEnded) return false
  const answer = once(socket, 'data').then(([data]) => String(data).startsWith('HTTP/1.1 200'))
  const gone = once(socket, 'close').then(() => false)
  socket.write('GET /public HTTP/1.1\r\nHost: x\r\n\r\n')
  return await Promise.race([answer, gone])
}

const closed = async (socket: Socket) => {
  if (!socket.destroyed) await once(socket.resume(), 'close')
}

suite('limits of the connections of a server', () => {
  test('if one IP address has 600 idle connections, other addresses and callers with a key get through', async () => {
    const before = await countSockets()
    {
      await using server = await start({ most: 64, mostUnknownOfOne: 32 })
      const idle: Socket[] = []
      for (let index = 0; index < 600; index++) {
        idle.push(await server.open('127.0.0.2'))
        if (index % 50 !== 0) continue
        assert.equal((await call(server, '/mine')).status, 200)
        assert.equal((await call(server, '/mine', { localAddress: '127.0.0.2' })).status, 200)
      }
      // At most the newest 32 of the 600 idle connections are still open.
      await Promise.all(idle.slice(0, -32).map(closed))
      assert.ok((await server.openSockets()) <= 33)
    }
    assert.equal(await countSockets(), before)
  })

  test('if connections without a credential reach their limit, the server closes the longest silent one', async () => {
    await using server = await start({ most: 8, mostUnknownOfOne: 4 })
    const sockets: Socket[] = []
    for (let index = 2; index < 10; index++) sockets.push(await server.open(`127.0.0.${index}`))
    const [first, second, third] = sockets as [Socket, Socket, Socket]
    assert.ok(await isOpen(first), 'a call is a sign of life')
    third.write('GET /public HTTP/1.1\r\nX-')
    await server.open('127.0.0.1')
    await closed(second)
    await server.open('127.0.0.1')
    await closed(third)
    assert.ok(await isOpen(first), 'a head that trickles in is none')
  })

  test('a connection without a credential can be evicted even if bytes of a slow body keep coming on it', async () => {
    await using server = await start({ mostUnknownOfOne: 2 })
    const slow = await server.open()
    slow.write('POST /public HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{')
    const other = await server.open()
    assert.ok(await isOpen(other))
    slow.write('"')
    await server.open()
    await closed(slow)
    assert.ok(await isOpen(other))
  })

  test('a running call and a signed-in WebSocket survive, however many other connections are opened', async () => {
    await using server = await start({ most: 8, mostHeld: 6, mostUnknownOfOne: 4 })
    const begun = server.nextHeld()
    const held = call(server, '/held', { localAddress: '127.0.0.2' })
    await begun
    const socket = new WebSocket(`ws://127.0.0.1:${server.port}/socket`, { headers: credential })
    assert.equal(String((await once(socket, 'message'))[0]), 'hello')
    const late = new WebSocket(`ws://127.0.0.1:${server.port}/late`)
    await once(late, 'open')
    late.send('a credential')
    assert.equal(String((await once(late, 'message'))[0]), 'signed in')
    for (let index = 0; index < 40; index++) await server.open(`127.0.0.${1 + (index % 4)}`)
    for (const still of [socket, late]) {
      still.ping()
      await once(still, 'pong')
    }
    server.release()
    assert.equal((await held).status, 200)
  })

  test('a WebSocket whose caller has not signed in can be evicted', async () => {
    await using server = await start({ mostUnknownOfOne: 2 })
    const late = new WebSocket(`ws://127.0.0.1:${server.port}/late`)
    await once(late, 'open')
    const gone = once(late, 'close')
    for (let index = 0; index < 2; index++) await server.open()
    await gone
  })

  test('while more than 1/16 of the connections have no credential, an idle one with a credential stays', async () => {
    await using server = await start({ most: 6, mostUnknownOfOne: 2 })
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    try {
      assert.deepEqual(await call(server, '/mine', { agent }), { status: 200, isReused: false })
      for (let index = 0; index < 30; index++) await server.open(`127.0.0.${1 + (index % 10)}`)
      assert.deepEqual(await call(server, '/mine', { agent }), { status: 200, isReused: true })
    } finally {
      agent.destroy()
    }
  })

  test('if idle connections with a credential fill the server, a new connection evicts the longest idle one', async () => {
    await using server = await start({ most: 3 })
    const known: Socket[] = []
    for (let index = 0; index < 3; index++) {
      const socket = await server.open()
      const answered = once(socket, 'data')
      socket.write('GET /mine HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer key\r\n\r\n')
      await answered
      known.push(socket)
    }
    assert.equal((await call(server, '/mine')).status, 200)
    await closed(known[0]!)
    assert.ok(await isOpen(known[1]!))
  })

  test('a call above the server’s limit of concurrent calls answers 503, and running calls continue', async () => {
    await using server = await start({ most: 8, mostHeld: 2 })
    const held: ReturnType<typeof call>[] = []
    for (let index = 0; index < 2; index++) {
      const begun = server.nextHeld()
      held.push(call(server, '/held'))
      await begun
    }
    assert.equal((await call(server, '/mine')).status, 503)
    server.release()
    for (const { status } of await Promise.all(held)) assert.equal(status, 200)
    assert.equal((await call(server, '/mine')).status, 200)
  })

  test('if one owner’s calls fill the server, another owner’s new call ends the oldest of these calls', async () => {
    await using server = await start({ most: 16, mostHeld: 4 })
    const hold = async (owner: string) => {
      const begun = server.nextHeld()
      const answered = call(server, '/held', { headers: { ...credential, for: owner } }).then(
        ({ status }) => status,
        () => 'cut off' as const,
      )
      assert.equal(await Promise.race([begun, answered]), undefined, owner)
      return { answered }
    }
    const greedy = [await hold('greedy'), await hold('greedy'), await hold('greedy'), await hold('greedy')]
    const asGreedy = { headers: { ...credential, for: 'greedy' } }
    assert.equal((await call(server, '/mine', asGreedy)).status, 503)

    const others = [await hold('other'), await hold('other')]
    assert.equal(await greedy[0]?.answered, 'cut off')
    assert.equal(await greedy[1]?.answered, 'cut off')
    // A new call ends a call of another owner only if that owner has at least two calls more. Here both owners have two calls. So
    // a third call of `other` is refused.
    assert.equal((await call(server, '/mine', { headers: { ...credential, for: 'other' } })).status, 503)
    assert.deepEqual(server.lines.slice(1), [], 'what clients do is no line of the log')
    server.release()
    for (const { answered } of [...greedy.slice(2), ...others]) assert.equal(await answered, 200)
  })

  test('the server does not process a call on a connection that was reset before the server accepted it', async () => {
    await using server = await start({})
    // While spawnSync blocks this thread, the server accepts no connection.
    const { status, stderr } = spawnSync(process.execPath, ['-e', sendAndReset, String(server.port)], {
      timeout: 20_000,
    })
    assert.equal(status, 0, String(stderr))
    assert.equal((await call(server, '/mine')).status, 200)
    assert.equal(server.calls(), 1)
  })

  test('a connection with too many unanswered calls is closed, and its last call is not processed', async () => {
    await using server = await start({ mostCallsOfOne: 3 })
    const one = 'GET /held HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer key\r\n\r\n'
    const socket = await server.open()
    const begun = [server.nextHeld(), server.nextHeld(), server.nextHeld()]
    socket.write(one.repeat(3))
    await Promise.all(begun)
    socket.write(one)
    await closed(socket)

    const other = await server.open()
    const [, , , fourth] = [1, 2, 3, 4].map(() => server.nextHeld())
    let isServed = false
    fourth?.then(() => {
      isServed = true
    })
    other.write(one.repeat(4))
    await closed(other)
    assert.equal((await call(server, '/mine')).status, 200)
    assert.ok(!isServed)
  })
})

suite('a request whose head never ends', () => {
  test('a call whose head is not complete in time answers 408, whether the client is silent or slow', async () => {
    const server = createHttpServer({ headersTimeout: 100, connectionsCheckingInterval: 20 })
    server.on('clientError', (error, socket) => refuseBadHttp(error, socket, 50))
    new Connections().watch(server)
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const sockets = [1, 2].map(() => connect((server.address() as AddressInfo).port, '127.0.0.1'))
    const [silent, slow] = sockets as [Socket, Socket]
    const timer = setInterval(() => slow.write('x'), 20)
    try {
      let heard = ''
      slow
        .on('error', () => {})
        .on('data', (data) => {
          heard += data
        })
      slow.write('GET / HTTP/1.1\r\nX-Slow: ')
      await Promise.all([closed(silent), once(slow, 'end')])
      assert.match(heard, /^HTTP\/1\.1 408 /)
    } finally {
      clearInterval(timer)
      for (const socket of sockets) socket.destroy()
      server.closeAllConnections()
      server.close()
    }
  })
})
