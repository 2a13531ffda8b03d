import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { suite, test } from 'node:test'
import { SlowBodies } from './slow-bodies.ts'

suite('request bodies that come slowly', () => {
  test('when reading a request fails, the server stops checking the speed of the request’s body', async () => {
    const server = createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
    try {
      socket.write('POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1000\r\n\r\nx')
      const [request] = (await once(server, 'request')) as [IncomingMessage]
      let slow = 0
      new SlowBodies({ spanMs: 20 }).follow(request, () => (slow += 1))
      const reading = (async () => {
        for await (const _ of request.iterator({ destroyOnReturn: false })) request.emit('error', new Error('failed'))
      })()
      await assert.rejects(reading, /failed/)
      assert.equal(request.socket, null)
      // Wait long enough that the speed of a body would be checked several times.
      await new Promise((resolve) => setTimeout(resolve, 60))
      assert.equal(slow, 0)
    } finally {
      socket.destroy()
      server.close()
    }
  })
})
