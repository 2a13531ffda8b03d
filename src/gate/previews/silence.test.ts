import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type IncomingMessage, request, type ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { suite, test } from 'node:test'
import { holdLongTimers } from '#src/kit/testing/long-timers.ts'
import { startSides } from '../testing/simulated.ts'
import { key, previewHost } from '../testing/visiting.ts'

const hour = 3_600_000
const presenceMs = 20_000

/** Returns the open sockets of this process that Node closes when they are idle, without those of the simulated control. */
const timedSockets = (controlPort: number) =>
  (process as unknown as { _getActiveHandles: () => unknown[] })
    ._getActiveHandles()
    .filter((handle) => handle instanceof Socket && (handle.timeout ?? 0) > 0)
    .filter((socket) => (socket as Socket).localPort !== controlPort)

suite('preview connections that are silent for long', () => {
  test('an hour of silence ends no preview WebSocket or stream, and the open connection counts as activity', {
    timeout: 60_000,
  }, async () => {
    await using sides = await startSides({ presenceMs })
    sides.inside.upgrade = (_request, socket) => {
      socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n')
      socket.pipe(socket)
    }
    const started = Promise.withResolvers<ServerResponse>()
    sides.inside.call = (_request, response) => {
      response.write('first')
      started.resolve(response)
    }
    using timers = holdLongTimers()
    const headers = { host: previewHost, ...key }
    const upgrade = { ...headers, connection: 'Upgrade', upgrade: 'websocket' }
    const [, socket] = await once(request({ port: sides.port, headers: upgrade, agent: false }).end(), 'upgrade')
    const stream = request({ port: sides.port, headers, agent: false }).end()
    const [answer] = (await once(stream, 'response')) as [IncomingMessage]
    const response = await started.promise
    assert.equal(String((await once(answer, 'data'))[0]), 'first')
    const asked = sides.asked.length
    for (let passed = 0; passed < hour; passed += presenceMs) {
      timers.pass(presenceMs)
      // Wait until the gate has asked control again about both open calls, the WebSocket and the answer.
      while (timers.waiting(presenceMs) < 2) {
        assert.deepEqual([socket.destroyed, answer.destroyed], [false, false], `after ${passed / 1000} seconds`)
        await new Promise((resolve) => setImmediate(resolve))
      }
    }
    // Node would close a socket with an idle timeout. The test cannot advance the timers of sockets, so it checks that no socket
    // has such a timer.
    assert.deepEqual(timedSockets(sides.controlPort), [])
    socket.write('ping')
    assert.equal(String((await once(socket, 'data'))[0]), 'ping')
    response.end('last')
    assert.equal(String((await once(answer, 'data'))[0]), 'last')
    assert.equal(sides.asked.length - asked, (2 * hour) / presenceMs)
    socket.destroy()
  })
})
