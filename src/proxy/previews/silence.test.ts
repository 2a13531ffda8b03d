import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type IncomingMessage, request, type ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { mock, suite, test } from 'node:test'
import { startSides } from '../testing/simulated.ts'
import { key, previewHost } from '../testing/visiting.ts'

const hour = 3_600_000
const step = 10_000

/** Sockets that Node would call idle after some time. */
const timedSockets = () =>
  (process as unknown as { _getActiveHandles: () => unknown[] })
    ._getActiveHandles()
    .filter((handle) => handle instanceof Socket && (handle.timeout ?? 0) > 0)

suite('previews: silence', () => {
  test('an hour of it ends neither a WebSocket nor a stream, and the sandbox counts as used all the while', async () => {
    await using sides = await startSides({ presenceMs: 20_000 })
    const before = timedSockets().length
    sides.inside.upgrade = (_request, socket) => {
      socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n')
      socket.pipe(socket)
    }
    const started = Promise.withResolvers<ServerResponse>()
    sides.inside.call = (_request, response) => {
      response.write('first')
      started.resolve(response)
    }
    mock.timers.enable({ apis: ['setTimeout'] })
    try {
      const headers = { host: previewHost, ...key }
      const upgrade = { ...headers, connection: 'Upgrade', upgrade: 'websocket' }
      const [, socket] = await once(request({ port: sides.port, headers: upgrade, agent: false }).end(), 'upgrade')
      const stream = request({ port: sides.port, headers, agent: false }).end()
      const [answer] = (await once(stream, 'response')) as [IncomingMessage]
      const response = await started.promise
      assert.equal(String((await once(answer, 'data'))[0]), 'first')
      const asked = sides.asked.length
      for (let passed = 0; passed < hour; passed += step) {
        mock.timers.tick(step)
        // What the timers began is done before they go on.
        for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve))
      }
      // Timers of Node's own sockets are not ours to move: there are none on the way.
      assert.ok(timedSockets().length <= before + 1, `${timedSockets().length} sockets have a timeout`)
      socket.write('ping')
      assert.equal(String((await once(socket, 'data'))[0]), 'ping')
      response.end('last')
      assert.equal(String((await once(answer, 'data'))[0]), 'last')
      assert.ok(sides.asked.length - asked > 20, `asked ${sides.asked.length - asked} times`)
      socket.destroy()
    } finally {
      mock.timers.reset()
    }
  })
})
