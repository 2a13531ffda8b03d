// Tests what a server with TLS does if a client does not complete the TLS handshake.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect } from 'node:net'
import { suite, test } from 'node:test'
import { connect as connectTls } from 'node:tls'
import Type from 'typebox'
import { makeAuthority, makeServerCertificate, spanOf } from '#src/kit/certificate.ts'
import { silentLog } from '#src/kit/log.ts'
import { Connections } from './connections.ts'
import { routesOf } from './route.ts'
import { createServer } from './server.ts'

const authority = makeAuthority('A test', spanOf(1))
const own = makeServerCertificate({ name: 'A test', ...authority }, ['a.test'], spanOf(1))

const start = async (handshakeTimeout: number) => {
  const route = routesOf<object, 'public'>()
  const call = { method: 'GET', path: '/', summary: 'is called', needs: 'public' } as const
  const server = await createServer({
    routes: [route({ ...call, replies: { 200: Type.String() }, run: () => 'hello' })],
    prefixes: [''],
    source: 'TEST',
    guard: () => ({}),
    log: silentLog(),
    connections: new Connections(),
    tls: { cert: own.certificate, key: own.privateKey, handshakeTimeout },
  })
  await server.listen({ host: '127.0.0.1', port: 0 })
  const { port } = server.server.address() as AddressInfo
  return { port, [Symbol.asyncDispose]: () => server.close() }
}

/** Sends bytes on a new connection. Resolves with the answer when the server has closed the connection. */
const answerTo = async (port: number, sent: string | Buffer): Promise<string> => {
  const socket = connect(port, '127.0.0.1')
  const pieces: Buffer[] = []
  socket.on('data', (piece: Buffer) => pieces.push(piece))
  socket.on('error', () => {})
  socket.write(sent)
  await once(socket, 'close')
  return Buffer.concat(pieces).toString('latin1')
}

suite('a server with TLS', () => {
  test('a connection whose TLS handshake takes too long is closed', async () => {
    await using server = await start(100)
    const beginning = Buffer.from('1603010200010001fc0303', 'hex')
    for (const sent of ['', beginning]) assert.equal(await answerTo(server.port, sent), '')
  })

  test('a call without TLS to a port with TLS gets no HTTP answer, and its connection is closed at once', async () => {
    await using server = await start(60_000)
    assert.doesNotMatch(await answerTo(server.port, 'GET / HTTP/1.1\r\nHost: a.test\r\n\r\n'), /HTTP/)
  })

  test('if a client resets its connection during the TLS handshake, other clients are not affected', async () => {
    await using server = await start(60_000)
    for (let count = 0; count < 20; count++) {
      const socket = connect(server.port, '127.0.0.1')
      await once(socket, 'connect')
      socket.resetAndDestroy()
    }
    const client = connectTls({
      ...{ host: '127.0.0.1', port: server.port, servername: 'a.test', ca: authority.certificate },
    })
    client.write('GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n')
    assert.match((await client.toArray()).join(''), /^HTTP\/1\.1 200.*hello$/s)
  })
})
