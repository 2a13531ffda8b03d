import assert from 'node:assert/strict'
import { once } from 'node:events'
import { request } from 'node:http'
import { suite, test } from 'node:test'
import { type Sides, startSides } from '../testing/simulated.ts'
import { key, previewHost, refused } from '../testing/visiting.ts'

suite('WebSockets of previews', () => {
  const upgrade = (sides: Sides, headers: Record<string, string> = key) =>
    request({
      port: sides.port,
      path: '/live?DAYTONA_SANDBOX_AUTH_KEY=s3cret',
      headers: { host: previewHost, connection: 'Upgrade', upgrade: 'websocket', ...headers },
    }).end()

  test('a preview WebSocket passes bytes in both directions, and no credential reaches the server', async () => {
    await using sides = await startSides()
    let given: Record<string, unknown> = {}
    sides.inside.upgrade = (incoming, socket) => {
      given = { url: incoming.url, ...incoming.headers }
      socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n')
      socket.pipe(socket)
    }
    const [, socket] = await once(upgrade(sides, { ...key, origin: `http://${previewHost}` }), 'upgrade')
    socket.write('ping')
    assert.equal(String((await once(socket, 'data'))[0]), 'ping')
    assert.deepEqual(
      [given['url'], given['host'], given['origin'], given['upgrade'], given['authorization']],
      ['/live', previewHost, `http://${previewHost}`, 'websocket', undefined],
    )
    socket.destroy()
  })

  test('if control, the gate or the sandbox’s server refuses a preview WebSocket, the answer is plain HTTP', async () => {
    await using sides = await startSides()
    sides.inside.upgrade = (_request, socket) => {
      socket.end('HTTP/1.1 403 Forbidden\r\nContent-Length: 4\r\n\r\nnope')
    }
    const [theirs] = await once(upgrade(sides), 'response')
    assert.equal(theirs.resume().statusCode, 403)
    sides.dialRefusal = 'connect'
    const [silent] = await once(upgrade(sides), 'response')
    assert.equal(silent.resume().statusCode, 502)
    await using others = await startSides()
    refused(others)
    const [own] = await once(upgrade(others), 'response')
    assert.equal(own.resume().statusCode, 401)
  })
})
