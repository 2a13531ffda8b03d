// Control, the toolbox and the gate each refuse the head of a request that could be understood in two ways.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect } from 'node:net'
import { suite, test } from 'node:test'
import { startSides } from '#src/gate/testing/simulated.ts'
import { silentLog } from '#src/kit/log.ts'
import { routesOf } from './route.ts'
import { createServer } from './server.ts'

const upgrade =
  'Connection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OTAxMjM0NQ=='

const refused: readonly [string, readonly string[]][] = [
  ['two Host headers', ['Host: a.test', 'Host: b.test']],
  ['two Host headers that say the same', ['Host: a.test', 'host: a.test']],
  ['no Host header', []],
  ['two hosts in one header', ['Host: a.test, b.test']],
  ['a host with a user', ['Host: user@a.test']],
  ['a host with a path', ['Host: a.test/x']],
  ['two Authorization headers', ['Host: a.test', 'Authorization: Bearer a', 'Authorization: Bearer b']],
  ['two lengths', ['Host: a.test', 'Content-Length: 0', 'Content-Length: 0']],
  ['two lengths in one header', ['Host: a.test', 'Content-Length: 0, 0']],
  ['a length and chunks', ['Host: a.test', 'Content-Length: 0', 'Transfer-Encoding: chunked']],
  ['chunks twice', ['Host: a.test', 'Transfer-Encoding: chunked', 'Transfer-Encoding: chunked']],
  ['a coding that is not chunks', ['Host: a.test', 'Transfer-Encoding: gzip']],
]

const taken: readonly [string, readonly string[]][] = [
  ['a name', ['Host: a.test']],
  ['a name and a port', ['Host: a_b.test:80']],
  ['an IPv6 address', ['Host: [::1]:3000']],
  ['an empty host', ['Host:']],
]

/** Sends a call with exactly these header lines. Returns the status of the answer. */
const statusOf = async (port: number, path: string, headers: readonly string[]): Promise<number> => {
  const socket = connect(port, '127.0.0.1')
  socket.write([`GET ${path} HTTP/1.1`, ...headers, '', ''].join('\r\n'))
  try {
    const [answer] = await once(socket, 'data', { signal: AbortSignal.timeout(20_000) })
    return Number(/^HTTP\/1\.1 (\d+)/.exec(String(answer))?.[1])
  } finally {
    socket.destroy()
  }
}

const startServer = async () => {
  const row = routesOf<object, 'public'>()({
    method: 'GET',
    path: '/it',
    needs: 'public',
    summary: 'answers',
    replies: { 200: null },
    run: () => undefined,
  })
  const server = await createServer({
    routes: [row],
    prefixes: [''],
    source: 'TEST',
    guard: () => ({}),
    log: silentLog(),
  })
  await server.listen({ host: '127.0.0.1', port: 0 })
  return {
    port: (server.server.address() as AddressInfo).port,
    [Symbol.asyncDispose]: async () => {
      server.server.closeAllConnections()
      await server.close()
    },
  }
}

suite('a server that is made from routes', () => {
  for (const [what, headers] of refused) {
    test(`an ambiguous or incomplete request head (${what}) answers 400, with or without an upgrade`, async () => {
      await using server = await startServer()
      assert.equal(await statusOf(server.port, '/it', headers), 400)
      assert.equal(await statusOf(server.port, '/it', [...headers, upgrade]), 400)
    })
  }
  for (const [what, headers] of taken) {
    test(`a request with ${what} as its host answers 200`, async () => {
      await using server = await startServer()
      assert.equal(await statusOf(server.port, '/it', headers), 200)
    })
  }
})

suite('request heads that the gate refuses', () => {
  const paths = { toolbox: '/toolbox/box/x', 'object storage': '/org/x/context.tar' }
  for (const [place, path] of Object.entries(paths)) {
    for (const [what, headers] of refused) {
      test(`the gate answers 400 to an ambiguous or incomplete request head (${what}) at the ${place}, and does not ask control`, async () => {
        await using sides = await startSides()
        const port = Number(new URL(sides.url).port)
        assert.equal(await statusOf(port, path, headers), 400)
        assert.equal(await statusOf(port, path, [...headers, upgrade]), 400)
        assert.deepEqual([sides.asked, sides.seen], [[], []])
      })
    }
  }
})
