import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer, type RequestListener, type Server } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { createSecureContext } from 'node:tls'
import { noNetworks, readNetworks } from '#src/kit/networks.ts'
import { OutboundError, type OutboundReason } from './error.ts'
import { createOutbound, type OutboundRequest, outboundOf } from './outbound.ts'
import type { Resolve } from './target.ts'
import { readTargetUrl } from './target.ts'

const loopback = readNetworks('127.0.0.0/8')!

const serve = async (listener: RequestListener) => {
  let connections = 0
  const server: Server = createServer(listener).on('connection', () => {
    connections += 1
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  return {
    port,
    url: `http://127.0.0.1:${port}`,
    connections: () => connections,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

const named =
  (...addresses: string[]): Resolve =>
  async () =>
    addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }))

const unused: Resolve = () => assert.fail('nobody should have been asked for a name')

const reasonOf = async (work: Promise<unknown>): Promise<OutboundReason | undefined> =>
  await work.then(
    () => undefined,
    (error: unknown) => (error instanceof OutboundError ? error.reason : assert.fail(String(error))),
  )

suite('the targets of outbound calls', () => {
  test('an outbound call accepts a server’s certificate only if `secureContext` or Node’s own list trusts it', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'alcove-outbound-'))
    try {
      const [key, cert] = ['key.pem', 'cert.pem'].map((name) => join(directory, name)) as [string, string]
      const subject = ['-subj', '/CN=ours', '-addext', 'subjectAltName=IP:127.0.0.1', '-days', '2']
      const made = ['req', '-x509', '-nodes', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', ...subject]
      execFileSync('openssl', [...made, '-keyout', key, '-out', cert], { stdio: 'pipe' })
      const ca = readFileSync(cert, 'utf8')
      const server = createTlsServer({ key: readFileSync(key), cert: ca }, (_request, response) => response.end('ours'))
      await once(server.listen(0, '127.0.0.1'), 'listening')
      try {
        const request: OutboundRequest = {
          method: 'GET',
          url: `https://127.0.0.1:${(server.address() as AddressInfo).port}/`,
        }
        const trusting = createOutbound({ allowed: loopback, secureContext: () => createSecureContext({ ca }) })
        assert.equal((await trusting.send(request)).body.toString(), 'ours')
        assert.equal(await reasonOf(createOutbound({ allowed: loopback }).send(request)), 'unreachable')
      } finally {
        server.closeAllConnections()
        await new Promise((resolve) => server.close(resolve))
      }
    } finally {
      rmSync(directory, { recursive: true, force: true })
    }
  })

  test('an outbound call reaches an allowed server with its method, path, headers and body', async () => {
    await using server = await serve(async (request, response) => {
      const pieces: Buffer[] = []
      for await (const piece of request) pieces.push(piece as Buffer)
      const seen = [request.method, request.url, request.headers['x-one'], Buffer.concat(pieces).toString()]
      response.writeHead(418, { 'x-two': '2' }).end(JSON.stringify(seen))
    })
    const { send } = createOutbound({ allowed: loopback, resolve: unused })
    const reply = await send({ method: 'POST', url: `${server.url}/a?b=c`, headers: { 'x-one': '1' }, body: 'body' })
    assert.deepEqual([reply.status, reply.headers['x-two']], [418, '2'])
    assert.deepEqual(JSON.parse(reply.body.toString()), ['POST', '/a?b=c', '1', 'body'])
  })

  test('outbound calls to loopback, private, link-local and metadata addresses are refused in every notation', async () => {
    await using server = await serve((_request, response) => response.end())
    const { send } = createOutbound({ allowed: noNetworks, resolve: unused })
    const hosts = [
      '127.0.0.1',
      '127.1',
      '2130706433',
      '0x7f.0.0.1',
      '0177.0.0.1',
      '0.0.0.0',
      '10.0.0.1',
      '169.254.169.254',
      '[::1]',
      '[::]',
      '[::ffff:127.0.0.1]',
      '[::ffff:7f00:1]',
      '[64:ff9b::7f00:1]',
      '[fe80::1]',
      '[fd00::1]',
    ]
    for (const host of hosts) {
      assert.equal(await reasonOf(send({ method: 'GET', url: `http://${host}:${server.port}/` })), 'not_public', host)
    }
    assert.equal(server.connections(), 0)
  })

  test('an outbound call is refused if any of the host name’s addresses is refused', async () => {
    await using server = await serve((_request, response) => response.end())
    for (const addresses of [['127.0.0.1'], ['1.1.1.1', '127.0.0.1'], ['2606:4700::1', '::1'], ['::ffff:127.0.0.1']]) {
      const { send } = createOutbound({ allowed: noNetworks, resolve: named(...addresses), evenMilliseconds: 1 })
      const url = `http://rebinding.test:${server.port}/`
      assert.equal(await reasonOf(send({ method: 'GET', url })), 'not_public', addresses.join())
    }
    assert.equal(server.connections(), 0)
  })

  test('an outbound call to a network of control’s host is refused, unless the operator allows that network', async () => {
    await using server = await serve((_request, response) => response.end('here'))
    const own = readNetworks('1.1.1.0/24')!
    const url = `http://no-such-name.invalid:${server.port}/`
    const closed = createOutbound({
      allowed: noNetworks,
      readOwn: () => own,
      resolve: async () => [{ address: '1.1.1.1', family: 4 }],
      evenMilliseconds: 1,
    })
    // Control refuses port 1 of public addresses. So this test sends nothing to the Internet, even if the check is broken.
    assert.equal(await reasonOf(closed.send({ method: 'GET', url: 'http://no-such-name.invalid:1/' })), 'not_public')
    const both = createOutbound({ allowed: loopback, readOwn: () => loopback, resolve: named('127.0.0.1') })
    assert.equal((await both.send({ method: 'GET', url })).body.toString(), 'here')
  })

  test('an outbound call resolves a host name once, and connects to the address that was checked', async () => {
    await using server = await serve((request, response) => response.end(request.headers.host))
    let asked = 0
    const resolve: Resolve = async () => {
      asked += 1
      return [{ address: asked === 1 ? '127.0.0.1' : '169.254.169.254', family: 4 }]
    }
    const { send } = createOutbound({ allowed: loopback, resolve })
    const reply = await send({ method: 'GET', url: `http://no-such-name.invalid:${server.port}/` })
    assert.equal(reply.body.toString(), `no-such-name.invalid:${server.port}`)
    assert.equal(asked, 1)
  })

  test('outbound calls to an unknown name or a private address fail with the same text and the same delay', async () => {
    const slowly: Resolve = async () => {
      await new Promise((resolve) => setTimeout(resolve, 80))
      return [{ address: '10.0.0.1', family: 4 }]
    }
    const absent: Resolve = () => Promise.reject(Object.assign(new Error('no'), { code: 'ENOTFOUND' }))
    const broken: Resolve = () => Promise.reject(Object.assign(new Error('no'), { code: 'ESERVFAIL' }))
    const evenMilliseconds = 400
    const told = await Promise.all(
      [slowly, absent, broken, named(), named('10.0.0.1'), named('::1', '1.1.1.1')].map(async (resolve) => {
        const begun = performance.now()
        const { send } = createOutbound({ allowed: noNetworks, resolve, evenMilliseconds })
        const error = await send({ method: 'POST', url: 'http://db.corp.test:22/' }).catch((thrown: unknown) => thrown)
        assert.ok(error instanceof OutboundError)
        // Each refusal takes at least `evenMilliseconds`. A busy machine may take longer, so the test has no upper
        // limit.
        return [error.reason, error.message, performance.now() - begun + 1 >= evenMilliseconds]
      }),
    )
    const alike = ['not_public', 'The host db.corp.test is not on the public Internet.', true]
    assert.deepEqual(told, Array(6).fill(alike))
  })

  test('an outbound call that is redirected returns the redirect, and does not follow the redirect', async () => {
    await using inner = await serve((_request, response) => response.end('secret'))
    await using server = await serve((_request, response) => response.writeHead(302, { location: inner.url }).end())
    const reply = await createOutbound({ allowed: loopback }).send({ method: 'GET', url: server.url })
    assert.deepEqual([reply.status, reply.headers['location'], inner.connections()], [302, inner.url, 0])
  })

  test('an outbound call fails with different reasons for an unknown name, an empty reply and a closed port', async () => {
    const noName: Resolve = () => Promise.reject(new Error('ENOTFOUND'))
    const request: OutboundRequest = { method: 'GET', url: 'https://nobody.test/' }
    assert.equal(await reasonOf(createOutbound({ allowed: loopback, resolve: noName }).send(request)), 'not_public')
    assert.equal(await reasonOf(createOutbound({ allowed: loopback, resolve: named() }).send(request)), 'not_public')
    const server = await serve((_request, response) => response.end())
    await server[Symbol.asyncDispose]()
    const closed = createOutbound({ allowed: loopback }).send({ method: 'GET', url: server.url })
    assert.equal(await reasonOf(closed), 'unreachable')
  })

  test('outbound calls to ports of services other than HTTP are refused; so is http if TLS is required', async () => {
    const { send } = createOutbound({ allowed: loopback, resolve: named('1.1.1.1') })
    const smtp = send({ method: 'GET', url: 'https://public.test:25/' })
    assert.equal(await reasonOf(smtp), 'refused')
    const plain = send({ method: 'GET', url: 'http://public.test/', requireTls: true })
    assert.equal(await reasonOf(plain), 'refused')
    await using server = await serve((_request, response) => response.end('here'))
    const own = await createOutbound({ allowed: loopback }).send({ method: 'GET', url: server.url, requireTls: true })
    assert.equal(own.body.toString(), 'here')
  })
})

suite('the limits of an outbound call', () => {
  test('an outbound call fails if the response’s headers or body exceed the limit', async () => {
    await using server = await serve((request, response) => {
      if (request.url === '/headers') response.setHeader('x-large', 'x'.repeat(20_000))
      // The response has no Content-Length, so control notices only while it reads the body that the body is too large.
      response.write('x'.repeat(600))
      response.end('x'.repeat(600))
    })
    const { send } = createOutbound({ allowed: loopback })
    const get = (path: string, mostBytes: number) => send({ method: 'GET', url: server.url + path, mostBytes })
    assert.equal((await get('/', 1200)).body.length, 1200)
    assert.equal(await reasonOf(get('/', 1199)), 'too_large')
    assert.equal(await reasonOf(get('/headers', 1200)), 'too_large')
  })

  test('an outbound call times out if the server is silent or sends endlessly, or the name never resolves', async () => {
    await using server = await serve((request, response) => {
      if (request.url === '/endless') response.write('x')
    })
    const { send } = createOutbound({ allowed: loopback })
    for (const path of ['/silent', '/endless']) {
      const call = send({ method: 'GET', url: server.url + path, timeoutMilliseconds: 50 })
      assert.equal(await reasonOf(call), 'timeout', path)
    }
    const lost = createOutbound({ allowed: loopback, resolve: () => new Promise(() => {}) })
    const call = lost.send({ method: 'GET', url: 'https://lost.test/', timeoutMilliseconds: 50 })
    assert.equal(await reasonOf(call), 'timeout')
  })

  test('an outbound call to a server that does not speak HTTP fails as unreachable', async () => {
    const server = createTcpServer((socket) =>
      socket
        .on('error', () => {})
        .resume()
        .end('220 mail ESMTP\r\n'),
    )
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const { port } = server.address() as AddressInfo
    const call = createOutbound({ allowed: loopback }).send({ method: 'GET', url: `http://127.0.0.1:${port}/` })
    assert.equal(await reasonOf(call), 'unreachable')
    await new Promise((resolve) => server.close(resolve))
  })

  test('while 64 outbound calls run, another call fails immediately; after their end, new calls are made', async () => {
    const { send } = createOutbound({ allowed: loopback, resolve: () => new Promise(() => {}) })
    const request: OutboundRequest = { method: 'GET', url: 'https://lost.test/', timeoutMilliseconds: 50 }
    const waiting = Array.from({ length: 64 }, () => reasonOf(send(request)))
    assert.equal(await reasonOf(send(request)), 'busy')
    assert.deepEqual(new Set(await Promise.all(waiting)), new Set(['timeout']))
    assert.equal(await reasonOf(send(request)), 'timeout')
  })

  test('an organization with hanging servers uses at most a quarter of all concurrent outbound calls', async () => {
    const outbound = createOutbound({ allowed: loopback, resolve: () => new Promise(() => {}), mostAtOnce: 8 })
    const request: OutboundRequest = { method: 'GET', url: 'https://lost.test/', timeoutMilliseconds: 50 }
    const callOf = (organizationId: string) => reasonOf(outboundOf(outbound, organizationId).send(request))
    const hanging = [callOf('greedy'), callOf('greedy')]
    assert.equal(await callOf('greedy'), 'busy')
    assert.equal(await callOf('other'), 'timeout')
    assert.deepEqual(await Promise.all(hanging), ['timeout', 'timeout'])
    assert.equal(await callOf('greedy'), 'timeout')
  })
})

suite('the URLs that outbound calls accept', () => {
  test('an http or https URL with a host is accepted for an outbound call', () => {
    for (const given of ['https://id.example.com/realms/a', 'http://id.example.com:8080', 'HTTPS://EXAMPLE.COM']) {
      assert.equal(readTargetUrl(given).href, new URL(given).href)
    }
  })

  test('an outbound call is refused if its URL is not http(s), has credentials or no host, or is too long', () => {
    const long = `https://example.com/${'x'.repeat(2048)}`
    for (const given of [
      '',
      'example.com',
      'ftp://example.com',
      'file:///etc/passwd',
      'javascript:0',
      'https://u:p@e.com',
      'https://u@e.com',
      'https://',
      long,
    ]) {
      assert.throws(() => readTargetUrl(given), OutboundError, given)
    }
  })
})
