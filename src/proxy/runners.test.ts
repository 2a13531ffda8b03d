import assert from 'node:assert/strict'
import { on, once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { type ClientRequest, createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import { suite, test } from 'node:test'
import { Inflow } from '#src/kit/inflow.ts'
import { Runners } from './runners.ts'

const agree = (answer: string) => (_request: unknown, socket: Duplex) => void socket.write(answer)

/** A toolbox server that agrees to every upgrade and every connection into a sandbox. */
const startRunner = async (onDial = agree('HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n')) => {
  const directory = mkdtempSync(join(tmpdir(), 'alcove-runners-'))
  const path = join(directory, 'runner.sock')
  const server = createServer()
  const sockets = new Set<Duplex>()
  const keep = (_request: unknown, socket: Duplex) => void sockets.add(socket)
  server.on('upgrade', keep).on('connect', keep)
  server.on('upgrade', agree('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n'))
  server.on('connect', onDial)
  server.listen(path)
  await once(server, 'listening')
  return {
    address: `unix:${path}`,
    server,
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy()
      server.close()
      rmSync(directory, { recursive: true })
    },
  }
}

suite('connections to runners', () => {
  test('what may be long comes through memory that is used again: upgrades, and servers inside a sandbox', async () => {
    await using runner = await startRunner()
    using runners = new Runners()
    const headers = ['Host', 'x', 'Connection', 'Upgrade', 'Upgrade', 'websocket']
    const upgrade = runners.request(runner.address, { method: 'GET', path: '/x', headers, isUpgrade: true })
    upgrade.end()
    const [, upgraded] = await once(upgrade, 'upgrade')
    assert.ok(upgraded instanceof Inflow)
    upgraded.destroy()

    const access = { sandboxId: 'box', runnerAddress: runner.address }
    const call = runners.requestInside(access, 3000, { method: 'GET', path: '/', headers: ['Host', 'x'] })
    call.end()
    const [answer] = await once(call, 'response')
    assert.deepEqual([answer.statusCode, answer.socket instanceof Inflow], [204, true])
    call.destroy()
  })

  test('every call that is let in has a connection, however many others are held open', async () => {
    await using runner = await startRunner()
    using runners = new Runners()
    const held: ClientRequest[] = []
    const arrivals = on(runner.server, 'request')
    try {
      // Fewer at a time than wait to be accepted.
      for (let round = 0; round < 22; round++) {
        const calls = Array.from({ length: 100 }, () =>
          runners.request(runner.address, { method: 'GET', path: '/', headers: ['Host', 'x'] }),
        )
        held.push(...calls)
        for (const call of calls) call.on('error', () => undefined).end()
        for (let arrived = 0; arrived < calls.length; arrived++) await arrivals.next()
      }
    } finally {
      for (const call of held) call.destroy()
    }
  })

  test('a server inside that answers and closes in the middle of a body is heard', async () => {
    const closed = Promise.withResolvers<void>()
    await using runner = await startRunner((_request, socket) => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n')
      socket
        .once('close', () => closed.resolve())
        .once('data', () => {
          socket.write('HTTP/1.1 413 Content Too Large\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno')
          socket.destroy()
        })
    })
    using runners = new Runners()
    const headers = ['Host', 'x', 'Transfer-Encoding', 'chunked']
    const access = { sandboxId: 'box', runnerAddress: runner.address }
    const call = runners.requestInside(access, 3000, { method: 'POST', path: '/', headers })
    const heard = once(call, 'response')
    call.write('some')
    // It has closed, and nobody has read yet what it said.
    closed.promise.then(() => call.write('more'))
    const [answer] = await heard
    const body = await answer.toArray()
    assert.deepEqual([answer.statusCode, String(Buffer.concat(body))], [413, 'no'])
  })
})
