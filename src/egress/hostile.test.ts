// Tests the proxy for secrets with a hostile program and a hostile server. The proxy must keep running, and send secrets only to
// their hosts. An uncaught exception fails these tests, because such an exception would end the proxy, which all sandboxes use.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer as createHttps } from 'node:https'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { after, before, beforeEach, suite, test } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { connect, createServer as createTls, setDefaultCACertificates, type TLSSocket } from 'node:tls'
import { makeAuthority, makeServerCertificate } from '#src/kit/certificate.ts'
import { serveConnection } from './connection.ts'

const span = { notBefore: new Date(Date.now() - 86_400_000), notAfter: new Date(Date.now() + 86_400_000) }
const world = makeAuthority('The world', span)
const ours = makeAuthority('Our secrets', span)
const hosts = ['api.test']
const secret = {
  ...{ placeholder: 'placeholder_api', value: 'the-value', hosts },
  ...makeServerCertificate({ name: 'Our secrets', ...ours }, hosts, span),
}
const certified = makeServerCertificate({ name: 'The world', ...world }, hosts, span)
const identity = { cert: certified.certificate, key: certified.privateKey }

const portOf = (server: Server) => (server.address() as AddressInfo).port

/**
 * Makes a frame of HTTP/2 (RFC 9113 §4.1). Some of these frames are invalid, so Node's own clients and servers refuse to
 * send them.
 */
const frame = (type: number, flags: number, stream: number, body = Buffer.alloc(0)): Buffer => {
  const head = Buffer.alloc(9)
  head.writeUIntBE(body.length, 0, 3)
  head[3] = type
  head[4] = flags
  head.writeUInt32BE(stream, 5)
  return Buffer.concat([head, body])
}
/** Returns the stream number of each HTTP/2 frame in the bytes. */
const streamsIn = (bytes: Buffer): number[] => {
  const found: number[] = []
  for (let at = 0; at + 9 <= bytes.length; at += 9 + bytes.readUIntBE(at, 3)) found.push(bytes.readUInt32BE(at + 5))
  return found
}
/** Makes a frame with the headers of the first stream, as literals without compression. */
const headers = (isLast: boolean, ...pairs: [name: string, value: string][]): Buffer => {
  const literals = pairs.map(([name, value]) =>
    Buffer.concat([Buffer.of(0, name.length), Buffer.from(name), Buffer.of(value.length), Buffer.from(value)]),
  )
  return frame(1, isLast ? 5 : 4, 1, Buffer.concat(literals))
}
const settings = frame(4, 0, 0)
const preface = Buffer.concat([Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), settings])
const forbidden: [string, string] = ['http2-settings', 'x']
const get: [string, string][] = [
  [':method', 'GET'],
  [':scheme', 'https'],
  [':path', '/'],
  [':authority', 'api.test'],
]

suite('the proxy for secrets with hostile programs and servers', () => {
  let front: Server
  let far: Server
  let scripted: Server
  /**
   * `sockets`: the connections of programs to the proxy for secrets. `reached`: the connections of the proxy to the
   * test server `scripted`.
   */
  const sockets = new Set<Socket>()
  const reached = new Set<Socket>()
  let destination = { address: '127.0.0.1', port: 0 }
  /** Host and body of each request that the test server `far` has received from the proxy for secrets. */
  let received: string[] = []
  /** The bytes that the test server `scripted` sends when it gets the first bytes of a connection. */
  let script: string | Buffer = ''

  const open = async (protocol: 'h2' | 'http/1.1'): Promise<TLSSocket> => {
    const options = { servername: 'api.test', ca: ours.certificate, ALPNProtocols: [protocol] }
    const socket = connect({ host: '127.0.0.1', port: portOf(front), ...options })
    socket.on('error', () => {})
    await once(socket, 'secureConnect')
    return socket
  }

  /** Sends bytes to the proxy for secrets. Returns the received bytes when `isEnough` accepts them or the connection has ended. */
  const say = async (
    bytes: string | Buffer,
    {
      protocol = 'http/1.1',
      isEnough = (_got: string) => false,
    }: {
      protocol?: 'h2' | 'http/1.1'
      isEnough?: (got: string) => boolean
    } = {},
  ) => {
    const socket = await open(protocol)
    let got = ''
    const done = Promise.withResolvers<void>()
    socket.on('data', (data: Buffer) => {
      got += data.toString('latin1')
      if (isEnough(got)) done.resolve()
    })
    socket.on('close', () => done.resolve())
    socket.write(bytes)
    await done.promise
    socket.destroy()
    return got
  }
  const count = (text: string, part: string) => text.split(part).length - 1

  before(async () => {
    setDefaultCACertificates([world.certificate])
    far = createHttps(identity, (request, response) => {
      let body = ''
      request.on('data', (data) => {
        body += data
      })
      request.on('end', () => {
        received.push(`${request.headers.host} ${request.headers['x-key'] ?? ''}${body}`)
        response.end('ok')
      })
    })
    scripted = createTls({ ...identity, ALPNProtocols: ['h2', 'http/1.1'] }, (socket) => {
      socket.on('error', () => {})
      reached.add(socket)
      socket.once('close', () => reached.delete(socket))
      if (socket.alpnProtocol === 'h2') socket.write(settings)
      socket.once('data', () => socket.write(script))
      socket.resume()
    })
    front = createServer({ allowHalfOpen: true }, (socket) => {
      sockets.add(socket)
      const parts = { secrets: () => [secret], known: async () => {}, destination, trouble: () => {} }
      void serveConnection(socket, parts)
    })
    for (const server of [far, scripted, front]) await once(server.listen(0, '127.0.0.1'), 'listening')
  })
  beforeEach(() => {
    received = []
    destination = { address: '127.0.0.1', port: portOf(far) }
  })
  after(() => {
    for (const socket of sockets) socket.destroy()
    for (const server of [far, scripted, front]) server?.close()
  })

  for (const method of ['GET', 'DELETE', 'POST'])
    test(`the body of a ${method} is never read as a second request, even if Connection names Content-Length`, async () => {
      const hidden = 'POST /steal HTTP/1.1\r\nHost: evil.test\r\nContent-Length: 40\r\n\r\n'
      const lead = `${method} / HTTP/1.1\r\nHost: api.test\r\nConnection: content-length, host\r\nContent-Length: ${hidden.length}\r\n\r\n`
      const next = `GET / HTTP/1.1\r\nHost: api.test\r\nX-Key: ${secret.placeholder}\r\n\r\n`
      await say(`${lead}${hidden}${next}`, { isEnough: (got) => count(got, '\r\n\r\nok') === 2 })
      assert.deepEqual(received, [`api.test ${hidden}`, 'api.test the-value'])
    })

  test('the proxy for secrets drops the body of an upgrade, so that it is not read as another request', async () => {
    const body = 'GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n'
    const head = 'POST / HTTP/1.1\r\nHost: api.test\r\nConnection: upgrade\r\nUpgrade: x\r\n'
    await say(`${head}Content-Length: ${body.length}\r\n\r\n${body}`, { isEnough: (got) => got.endsWith('ok') })
    assert.deepEqual(received, ['api.test '])
  })

  const oddAnswers = {
    'a status of 0': 'HTTP/1.1 000 OK\r\nContent-Length: 0\r\n\r\n',
    'a control character in its reason': 'HTTP/1.1 200 O\x01K\r\nContent-Length: 0\r\n\r\n',
    'a change of protocol that nobody asked for':
      'HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\nraw',
  }
  for (const [what, text] of Object.entries(oddAnswers))
    test(`the proxy for secrets answers 502 if the server’s answer is wrong: ${what}`, async () => {
      destination.port = portOf(scripted)
      script = text
      assert.match(await say('GET / HTTP/1.1\r\nHost: api.test\r\n\r\n'), /HTTP\/1\.1 502 /)
    })

  for (const protocol of ['http/1.1', 'h2'] as const)
    test(`if a program disconnects, its server connection ends, and its queued requests are not sent (${protocol})`, async () => {
      destination.port = portOf(scripted)
      script = ''
      const came = once(scripted, 'secureConnection')
      const socket = await open(protocol)
      const request = 'GET / HTTP/1.1\r\nHost: api.test\r\n\r\n'
      socket.write(protocol === 'h2' ? Buffer.concat([preface, headers(true, ...get)]) : request.repeat(5))
      const [far] = await came
      let further = 0
      const note = () => {
        further += 1
      }
      scripted.on('secureConnection', note)
      const gone = once(far, 'close')
      await setTimeout(100)
      socket.destroy()
      await gone
      await setTimeout(300)
      scripted.off('secureConnection', note)
      assert.deepEqual([further, reached.size], [0, 0])
    })

  test('the proxy for secrets ends a connection whose server sends answers with status 100 without end', async () => {
    destination.port = portOf(scripted)
    script = `${'HTTP/1.1 100 Continue\r\n\r\n'.repeat(50)}HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok`
    assert.doesNotMatch(await say('GET / HTTP/1.1\r\nHost: api.test\r\n\r\n'), / 200 /)
  })

  test('the proxy for secrets disconnects a program that sends requests without end and waits for no answer', async () => {
    destination.port = portOf(scripted)
    script = ''
    assert.equal(await say('GET / HTTP/1.1\r\nHost: api.test\r\n\r\n'.repeat(10_000)), '')
  })

  const asked = Buffer.concat([preface, headers(true, ...get)])
  const post = headers(false, [':method', 'POST'], ...get.slice(1))
  const status: [string, string] = [':status', '200']
  const http2: Record<string, { sent: Buffer; answer?: Buffer }> = {
    'a request': { sent: Buffer.concat([preface, headers(true, ...get, forbidden)]) },
    'the trailers of a request': { sent: Buffer.concat([preface, post, headers(true, forbidden)]) },
    'an answer': { sent: asked, answer: headers(true, status, forbidden) },
    'the status of an answer': { sent: asked, answer: headers(true, [':status', '600']) },
    'an early answer': { sent: asked, answer: headers(false, [':status', '103'], forbidden) },
    'the trailers of an answer': {
      sent: asked,
      answer: Buffer.concat([headers(false, status), headers(true, forbidden)]),
    },
  }
  for (const [where, { sent, answer = headers(true, status) }] of Object.entries(http2))
    test(`a forbidden HTTP/2 header in ${where} ends only the request that it belongs to`, async () => {
      destination.port = portOf(scripted)
      script = answer
      const socket = await open('h2')
      // Send a ping after the first frame about the request. If the ping is answered, the proxy for secrets and the connection
      // still work.
      const lives = new Promise<void>((resolve) => {
        let got = Buffer.alloc(0)
        let hasAsked = false
        socket.on('data', (data: Buffer) => {
          got = Buffer.concat([got, data])
          if (got.includes('pingpong')) resolve()
          if (hasAsked || !streamsIn(got).includes(1)) return
          hasAsked = true
          socket.write(frame(6, 0, 0, Buffer.from('pingpong')))
        })
      })
      socket.write(sent)
      await lives
      socket.destroy()
    })

  test('the proxy for secrets refuses an HTTP/2 request if its scheme is not https', async () => {
    destination.port = portOf(scripted)
    // With another scheme than https, a server may accept a whole URL as the path. The URL can name another host.
    const pairs = get.map(([name, value]): [string, string] => [
      name,
      name === ':scheme' ? 'foo' : name === ':path' ? 'https://evil.test/' : value,
    ])
    const got = await say(Buffer.concat([preface, headers(true, ...pairs)]), {
      protocol: 'h2',
      isEnough: (text) => text.includes('another host'),
    })
    assert.match(got, /another host/)
  })
})
