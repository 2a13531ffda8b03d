import assert from 'node:assert/strict'
import { createServer, request as httpRequest } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { suite, test } from 'node:test'
import { Problem } from '#src/problems.ts'
import { forward } from './forward.ts'

/** A server's end that answers and closes with the last byte of a body, while the write of it is not told to be done yet. */
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

suite('proxy: a server that answers and closes at the last byte of a body', () => {
  test('is heard: nothing more is written that could break the connection before the answer is read', async () => {
    const proxy = createServer((request, response) => {
      forward({
        request,
        response,
        destination: {
          path: '/',
          send: ({ method, path, headers }) =>
            httpRequest({ method, path, headers, createConnection: () => closesAtOnce('last') as Socket }),
          inward: () => ['Host', 'there', 'Content-Length', request.headers['content-length'] ?? ''],
          outward: () => ['Content-Length', '2'],
          failure: (cause) => new Problem('internal', undefined, { cause }),
        },
      }).catch((error: Problem) => response.writeHead(502).end(String(error.cause)))
    })
    await new Promise<void>((listening) => proxy.listen(0, '127.0.0.1', listening))
    try {
      const { port } = proxy.address() as AddressInfo
      const reply = await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', body: 'first and last' })
      assert.deepEqual([reply.status, await reply.text()], [400, 'no'])
    } finally {
      proxy.closeAllConnections()
      proxy.close()
    }
  })
})
