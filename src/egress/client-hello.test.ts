import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { before, suite, test } from 'node:test'
import { connect } from 'node:tls'
import fc from 'fast-check'
import { mostHelloBytes, readClientHello } from './client-hello.ts'

/** Returns the first message that Node's TLS client sends. */
const helloOf = async (options: { servername?: string; ALPNProtocols?: string[] }): Promise<Buffer> => {
  const server = createServer()
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const client = connect({ host: '127.0.0.1', port: (server.address() as AddressInfo).port, ...options })
  client.on('error', () => {})
  const [socket] = (await once(server, 'connection')) as [Socket]
  const [bytes] = (await once(socket, 'data')) as [Buffer]
  client.destroy()
  socket.destroy()
  server.close()
  return bytes
}

suite('the first message of a TLS client', () => {
  let whole: Buffer
  before(async () => {
    whole = await helloOf({ servername: 'API.Example.com', ALPNProtocols: ['h2', 'http/1.1'] })
  })

  test('`readClientHello` returns the server name in lower case, and the protocols in their order', async () => {
    assert.deepEqual(readClientHello(whole), { serverName: 'api.example.com', protocols: ['h2', 'http/1.1'] })
    assert.deepEqual(readClientHello(await helloOf({})), { serverName: undefined, protocols: [] })
  })

  test('`readClientHello` returns `more` for a part of the message, and joins TLS records of one byte each', () => {
    for (let length = 0; length < whole.length; length++)
      assert.equal(readClientHello(whole.subarray(0, length)), 'more')
    const body = whole.subarray(5)
    const records = Buffer.concat([...body].map((byte) => Buffer.from([22, 3, 1, 0, 1, byte])))
    assert.deepEqual(readClientHello(records), readClientHello(whole))
  })

  test('`readClientHello` returns `other` for bytes that are not TLS and for a message that is too long', () => {
    for (const text of ['GET / HTTP/1.1\r\n', 'SSH-2.0-x\r\n', '\0\0', '\x16GET', '\x15\x03\x01\0\x02\x01\0'])
      assert.equal(readClientHello(Buffer.from(text, 'latin1')), 'other', text)
    const long = Buffer.concat([Buffer.from([22, 3, 1, 0xff, 0xff, 1, 0, 0xff, 0xff]), Buffer.alloc(mostHelloBytes)])
    assert.equal(readClientHello(long), 'other')
  })

  test('`readClientHello` never throws for a message with changed bytes, and returns only valid names', () => {
    const change = fc.tuple(fc.nat(whole.length - 1), fc.nat(255))
    fc.assert(
      fc.property(fc.array(change, { minLength: 1, maxLength: 8 }), fc.nat(whole.length), (changes, length) => {
        const bytes = Buffer.from(whole)
        for (const [at, byte] of changes) bytes[at] = byte
        const hello = readClientHello(bytes.subarray(0, length))
        if (typeof hello === 'object' && hello.serverName !== undefined)
          assert.match(hello.serverName, /^[a-z0-9._-]+$/)
      }),
      { numRuns: 2000 },
    )
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 400, size: 'max' }), (bytes) => void readClientHello(Buffer.from(bytes))),
    )
  })
})
