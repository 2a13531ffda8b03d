import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { suite, test } from 'node:test'
import { Interrupted } from '../interruption.ts'
import { openSocket } from './open-socket.ts'

/** Node's diagnostics channel that reports when an HTTP client has received the headers of an answer. */
const headReceived = 'http.client.response.finish'

suite('the opening of a WebSocket', () => {
  test('Ctrl-C ends the wait for a server’s error answer whose body never ends', { timeout: 20_000 }, async () => {
    const stop = new AbortController()
    const interrupt = () => setImmediate(() => stop.abort(new Interrupted(130)))
    const server = createServer().listen(0, '127.0.0.1')
    server.on('upgrade', (_request, socket) => {
      socket.on('error', () => {})
      socket.write('HTTP/1.1 400 Bad Request\r\ncontent-length: 100\r\n\r\nhalf')
    })
    subscribe(headReceived, interrupt)
    try {
      await once(server, 'listening')
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/ssh/command`
      await assert.rejects(openSocket(url, { headers: {}, signal: stop.signal }), Interrupted)
    } finally {
      unsubscribe(headReceived, interrupt)
      server.closeAllConnections()
      server.close()
    }
  })
})
