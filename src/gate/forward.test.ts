import assert from 'node:assert/strict'
import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { suite, test } from 'node:test'
import { Inflow } from '#src/kit/inflow.ts'
import { Problem } from '#src/problems.ts'
import type { Destination } from './destination.ts'
import { forward } from './forward.ts'

/**
 * Returns a simulated connection to a server that answers and closes at the last byte of a request body. The write of that
 * byte ends only after the close.
 */
const closesAtOnce = (lastBytes: string) => {
  let isOver = false
  return new Duplex({
    read: () => {},
    write(bytes: Buffer, _encoding, done) {
      if (isOver) return done(Object.assign(new Error('write EPIPE'), { code: 'EPIPE' }))
      isOver = bytes.toString().endsWith(lastBytes)
      if (!isOver) return done()
      setImmediate(done)
      setTimeout(() => {
        this.push('HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno')
        this.push(null)
      }, 5)
    },
  })
}

/** Starts a gate that forwards every call to the destination that `destinationOf` returns. */
const startForwarding = async (destinationOf: (request: IncomingMessage) => Omit<Destination, 'path' | 'failure'>) => {
  const proxy = createServer((request, response) => {
    const failure = (cause: unknown) => new Problem('internal', undefined, { cause })
    const destination = { path: '/', failure, ...destinationOf(request) }
    forward({ request, response, destination }).catch((error: Problem) =>
      response.writeHead(502).end(String(error.cause)),
    )
  })
  await new Promise<void>((listening) => proxy.listen(0, '127.0.0.1', listening))
  return {
    url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}/`,
    [Symbol.dispose]() {
      proxy.closeAllConnections()
      proxy.close()
    },
  }
}

suite('forwarding to a server that answers and closes at the last byte of a request’s body', () => {
  test('the caller gets the answer of a server that disconnects at the last byte of the request’s body', async () => {
    using proxy = await startForwarding(({ headers }) => ({
      send: ({ method, path, headers }) =>
        httpRequest({ method, path, headers, createConnection: () => closesAtOnce('last') as Socket }),
      inward: () => ['Host', 'there', 'Content-Length', headers['content-length'] ?? ''],
      outward: () => ['Content-Length', '2'],
    }))
    const reply = await fetch(proxy.url, { method: 'POST', body: 'first and last' })
    assert.deepEqual([reply.status, await reply.text()], [400, 'no'])
  })
})

suite('forwarding a long answer whose length is not passed on', () => {
  test('a long answer without a length is sent to the caller in chunks', async () => {
    const body = 'x'.repeat(300_000)
    const server = createServer((_request, response) => response.setHeader('Content-Length', body.length).end(body))
    await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
    try {
      const { port } = server.address() as AddressInfo
      using proxy = await startForwarding(() => ({
        send: ({ method, path, headers }) =>
          httpRequest({ method, path, headers, createConnection: () => Inflow.to({ port, host: '127.0.0.1' }) }),
        inward: () => ['Host', 'there', 'Connection', 'close'],
        outward: () => ['X-Length', 'none'],
      }))
      const reply = await fetch(proxy.url)
      assert.equal((await reply.text()).length, body.length)
    } finally {
      server.close()
    }
  })
})

suite('forwarding an answer without a length', () => {
  test('the gate forwards the head of an answer without a length before the first piece of the body arrives', {
    timeout: 60_000,
  }, async () => {
    const answering = Promise.withResolvers<ServerResponse>()
    const server = createServer((_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
      answering.resolve(response)
    })
    await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
    const { port } = server.address() as AddressInfo
    using proxy = await startForwarding(() => ({
      send: ({ method, path, headers }) => httpRequest({ host: '127.0.0.1', port, method, path, headers }),
      inward: () => ['Host', 'there'],
      outward: () => ['Content-Type', 'text/event-stream'],
    }))
    try {
      const reply = await fetch(proxy.url)
      assert.equal(reply.headers.get('content-type'), 'text/event-stream')
      ;(await answering.promise).end('data: 1\n\n')
      assert.equal(await reply.text(), 'data: 1\n\n')
    } finally {
      server.closeAllConnections()
      server.close()
    }
  })
})
