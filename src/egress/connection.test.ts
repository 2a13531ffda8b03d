import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { connect as connectHttp2 } from 'node:http2'
import { request } from 'node:https'
import { type AddressInfo, connect, createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, beforeEach, suite, test } from 'node:test'
import { connect as connectTls, createServer as createTlsServer, setDefaultCACertificates } from 'node:tls'
import { WebSocket } from 'ws'
import { makeAuthority, makeServerCertificate } from '#src/kit/certificate.ts'
import type { KnownSecret } from '#src/wire/secrets.ts'
import { serveConnection } from './connection.ts'
import { type Received, startFarServer } from './testing/far-server.ts'

const span = { notBefore: new Date(Date.now() - 86_400_000), notAfter: new Date(Date.now() + 86_400_000) }
const world = makeAuthority('The world', span)
const ours = makeAuthority('Our secrets', span)
const certify = (hosts: string[]) =>
  makeServerCertificate({ name: 'Our secrets', privateKey: ours.privateKey }, hosts, span)

const secretOf = (name: string, value: string, hosts: string[]): KnownSecret => ({
  ...{ placeholder: `placeholder_${name}`, value, hosts },
  ...certify(hosts),
})
const api = secretOf('api', 'the$&real/value', ['api.test', '*.wild.test'])
const others = secretOf('other', 'not-for-api', ['other.test'])

let far: Awaited<ReturnType<typeof startFarServer>>
let front: Server
let port: number
let scratch: string
let secrets: KnownSecret[] = []
let troubles: string[] = []
let destination = { address: '127.0.0.1', port: 0 }

const curl = (...args: string[]): Promise<string> =>
  new Promise((resolve, reject) => {
    const all = ['-sS', '--max-time', '20', '--connect-to', `::127.0.0.1:${port}`, ...args]
    execFile('curl', all, { maxBuffer: 64 * 1024 * 1024 }, (error, stdout, stderr) =>
      error === null ? resolve(stdout) : reject(new Error(`${error.message} ${stderr}`)),
    )
  })
const trusting = (authority: 'ours' | 'world') => ['--cacert', join(scratch, `${authority}.pem`)]
const get = async (...args: string[]): Promise<Received> => JSON.parse(await curl(...trusting('ours'), ...args))
const headerOf = ({ headers }: Received, name: string) => headers.find(([each]) => each.toLowerCase() === name)?.[1]
const auth = (value: string) => ['-H', `Authorization: Bearer ${value}`]

suite('the proxy for secrets', () => {
  before(async () => {
    scratch = await mkdtemp(join(tmpdir(), 'alcove-egress-'))
    await writeFile(join(scratch, 'ours.pem'), ours.certificate)
    await writeFile(join(scratch, 'world.pem'), world.certificate)
    setDefaultCACertificates([world.certificate])
    const names = ['api.test', 'other.test', 'plain.test', '*.wild.test']
    const certified = makeServerCertificate({ name: 'The world', privateKey: world.privateKey }, names, span)
    far = await startFarServer(certified, { host: '127.0.0.1', port: 0 })
    front = createServer({ allowHalfOpen: true }, (socket) => {
      const parts = { secrets: () => secrets, known: async () => {}, destination }
      void serveConnection(socket, { ...parts, trouble: (_about, sentence) => troubles.push(sentence) })
    })
    await once(front.listen(0, '127.0.0.1'), 'listening')
    port = (front.address() as AddressInfo).port
  })
  beforeEach(() => {
    secrets = [api, others]
    troubles = []
    destination = { address: '127.0.0.1', port: far.port }
  })
  after(async () => {
    front?.close()
    await far?.[Symbol.asyncDispose]()
    await rm(scratch, { recursive: true, force: true })
  })

  for (const version of ['1.1', '2']) {
    test(`over HTTP/${version}, the proxy for secrets puts a secret into headers, path and query, not the body`, async () => {
      const body = `{"key":"${api.placeholder}"}`
      const got = await get(
        ...[`--http${version}`, `https://api.test/bot${api.placeholder}/x?key=${api.placeholder}`],
        ...['-H', `X-Key: a${api.placeholder}b`, '-u', `me:${api.placeholder}`, '-d', body],
      )
      assert.equal(got.version, version === '2' ? '2.0' : '1.1')
      assert.equal(got.path, '/botthe%24%26real%2Fvalue/x?key=the%24%26real%2Fvalue')
      assert.equal(headerOf(got, 'x-key'), `a${api.value}b`)
      const credentials = headerOf(got, 'authorization')?.slice('Basic '.length) ?? ''
      assert.equal(Buffer.from(credentials, 'base64').toString(), `me:${api.value}`)
      assert.equal(got.body, body)
    })

    test(`the proxy for secrets refuses an HTTP/${version} request for another host than that of its TLS connection`, async () => {
      const args = [`--http${version}`, 'https://api.test/', '-H', 'Host: other.test', ...auth(api.placeholder)]
      assert.match(await curl(...trusting('ours'), '-w', '%{http_code}', ...args), /another host.*421$/s)
    })
  }

  test('the proxy for secrets changes no placeholder in a request to a host that may not get the secret', async () => {
    assert.equal(
      headerOf(await get('https://api.test/', ...auth(others.placeholder)), 'authorization'),
      `Bearer ${others.placeholder}`,
    )
    assert.equal(
      headerOf(await get('https://other.test/', ...auth(others.placeholder)), 'authorization'),
      'Bearer not-for-api',
    )
  })

  test('a star in a secret’s host, such as *.example.com, stands for exactly one label of a host name', async () => {
    assert.equal(
      headerOf(await get('https://a.wild.test/', ...auth(api.placeholder)), 'authorization'),
      `Bearer ${api.value}`,
    )
    await assert.rejects(get('https://a.b.wild.test/'), /certificate/i)
  })

  test('a connection to a host without a secret is not decrypted: the client gets the host’s own certificate', async () => {
    const url = ['https://plain.test/', ...auth(api.placeholder)]
    await assert.rejects(get(...url), /certificate/i)
    const got: Received = JSON.parse(await curl(...trusting('world'), ...url))
    assert.equal(headerOf(got, 'authorization'), `Bearer ${api.placeholder}`)
  })

  test('the proxy for secrets no longer sends a withdrawn secret, even on a connection that is already open', async () => {
    const session = connectHttp2('https://api.test', {
      createConnection: () =>
        connectTls({ host: '127.0.0.1', port, servername: 'api.test', ca: ours.certificate, ALPNProtocols: ['h2'] }),
    })
    const ask = async () => {
      const stream = session.request({ ':path': '/', ':authority': 'api.test', 'x-key': api.placeholder })
      const text = await new Response(stream.setEncoding('utf8') as never).text()
      return headerOf(JSON.parse(text), 'x-key')
    }
    assert.equal(await ask(), api.value)
    secrets = [{ ...api, value: 'rotated' }]
    assert.equal(await ask(), 'rotated')
    secrets = []
    assert.equal(await ask(), api.placeholder)
    session.close()
  })

  for (const version of ['1.1', '2']) {
    test(`over HTTP/${version} the proxy for secrets passes on body parts immediately, and then the trailers`, async () => {
      const options = { host: '127.0.0.1', port, servername: 'api.test', ca: ours.certificate }
      const open = () => {
        if (version === '1.1') {
          const headers = { host: 'api.test', 'transfer-encoding': 'chunked' }
          const out = request({ ...options, method: 'POST', path: '/stream', headers })
          out.flushHeaders()
          return { out, answer: once(out, 'response').then(([found]) => found), close: () => out.destroy() }
        }
        const connection = () => connectTls({ ...options, ALPNProtocols: ['h2'] })
        const session = connectHttp2('https://api.test', { createConnection: connection })
        const out = session.request({ ':path': '/stream', ':method': 'POST' }, { endStream: false })
        return { out, answer: once(out, 'response').then(() => out), close: () => session.destroy() }
      }
      const { out, answer, close } = open()
      const found = await answer
      const trailers = new Promise((resolve) => {
        found.on('trailers', resolve)
        found.on('end', () => setImmediate(() => resolve(found.trailers)))
      })
      for (const text of ['one', 'two']) {
        out.write(text)
        assert.equal(String((await once(found, 'data'))[0]), text)
      }
      out.end()
      assert.equal(((await trailers) as Record<string, string>)['x-end'], 'yes')
      close()
    })
  }

  test('the proxy for secrets passes on a request and an answer of 5 MB completely', async () => {
    const file = join(scratch, 'large')
    const large = Buffer.alloc(5_000_000, 'abcdefghij')
    await writeFile(file, large)
    for (const version of ['1.1', '2']) {
      const got = await curl(
        ...trusting('ours'),
        `--http${version}`,
        'https://api.test/stream',
        '--data-binary',
        `@${file}`,
      )
      assert.ok(got === large.toString(), version)
    }
  })

  test('the proxy for secrets puts a secret into a WebSocket’s upgrade, then passes messages both ways', async () => {
    const web = new WebSocket('wss://api.test/', {
      headers: { authorization: `Bearer ${api.placeholder}` },
      createConnection: () => connectTls({ host: '127.0.0.1', port, servername: 'api.test', ca: ours.certificate }),
    } as never)
    const [first] = await once(web, 'message')
    assert.match(String(first), /Bearer the\$&real\/value/)
    const echoed = once(web, 'message')
    web.send(api.placeholder)
    assert.equal(String((await echoed)[0]), api.placeholder)
    web.close()
    await once(web, 'close')
  })

  test('the proxy for secrets removes `Alt-Svc` from answers, because it would lead clients past the proxy', async () => {
    for (const version of ['1.1', '2']) {
      const head = await curl(
        ...trusting('ours'),
        `--http${version}`,
        '-D',
        '-',
        '-o',
        '/dev/null',
        'https://api.test/',
      )
      assert.doesNotMatch(head, /alt-svc/i)
      assert.match(head, /content-type/i)
    }
  })

  test('if a client does not trust the proxy’s certificate, its connection fails and the timeline says why', async () => {
    await assert.rejects(curl(...trusting('world'), 'https://api.test/'), /certificate/i)
    assert.match(troubles.join(), /refused the certificate for api\.test.*pin certificates/)
  })

  test('the proxy for secrets answers 502 and sends no request if it cannot verify the server’s certificate', async () => {
    const wrong = makeServerCertificate({ name: 'Our secrets', privateKey: ours.privateKey }, ['api.test'], span)
    await using liar = await startFarServer(wrong, { host: '127.0.0.1', port: 0 })
    destination = { address: '127.0.0.1', port: liar.port }
    for (const version of ['1.1', '2']) {
      const answer = await curl(...trusting('ours'), `--http${version}`, '-w', '%{http_code}', 'https://api.test/')
      assert.match(answer, /no secret was sent.*502$/s)
    }
    assert.match(troubles.join(), /No TLS connection to api\.test/)
  })

  test('the proxy for secrets passes on bytes without TLS unchanged, even if the server sends first', async () => {
    const greeter = createServer((socket) => {
      socket.on('error', () => {})
      socket.write('hello\n')
      socket.pipe(socket)
    })
    await once(greeter.listen(0, '127.0.0.1'), 'listening')
    destination = { address: '127.0.0.1', port: (greeter.address() as AddressInfo).port }
    for (const said of ['GET / HTTP/1.0\r\n\r\n', '']) {
      const socket = connect(port, '127.0.0.1')
      let text = ''
      socket.on('data', (chunk) => (text += chunk))
      if (said !== '') socket.end(said)
      else socket.once('data', () => socket.end())
      await once(socket, 'end')
      assert.equal(text, `hello\n${said}`)
    }
    greeter.close()
  })

  for (const [name, { protocol, reply }] of Object.entries({
    'a status that does not exist': { protocol: 'http/1.1', reply: 'HTTP/1.1 099 X\r\ncontent-length: 0\r\n\r\n' },
    'interim answers without end': {
      protocol: 'http/1.1',
      reply: 'HTTP/1.1 103 X\r\nlink: \u00ff<\r\n\r\n'.repeat(50),
    },
    'trailers that are none': {
      protocol: 'http/1.1',
      reply: 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntrailer: a\r\n\r\n0\r\ncontent-length: 5\r\n\r\n',
    },
    'a changed protocol that nobody asked for': {
      protocol: 'http/1.1',
      reply: 'HTTP/1.1 101 X\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n',
    },
    'an endless head': { protocol: 'http/1.1', reply: `HTTP/1.1 200 OK\r\n${'x-a: b\r\n'.repeat(50_000)}` },
    'no HTTP at all': { protocol: 'http/1.1', reply: '\0\xff\r\n'.repeat(100) },
    'no HTTP/2 at all': { protocol: 'h2', reply: 'HTTP/1.1 200 OK\r\n\r\n' },
    'an early end': { protocol: 'h2', reply: '' },
  }))
    test(`if a server answers with ${name}, its connection ends, and the proxy for secrets serves the next call`, async () => {
      const { certificate: cert, privateKey: key } = makeServerCertificate(
        { name: 'The world', ...world },
        ['api.test'],
        span,
      )
      const hostile = createTlsServer({ cert, key, ALPNProtocols: [protocol] }, (socket) => {
        socket.on('error', () => {})
        socket.once('data', () => socket.end(reply, 'latin1'))
      })
      await once(hostile.listen(0, '127.0.0.1'), 'listening')
      destination = { address: '127.0.0.1', port: (hostile.address() as AddressInfo).port }
      await curl(...trusting('ours'), '--max-time', '5', 'https://api.test/').catch(() => '')
      hostile.close()
      destination = { address: '127.0.0.1', port: far.port }
      assert.equal(
        headerOf(await get('https://api.test/', ...auth(api.placeholder)), 'authorization'),
        `Bearer ${api.value}`,
      )
    })

  test('the proxy for secrets answers 431 if the secrets would make the head of a request too large', async () => {
    secrets = [{ ...api, value: 'x'.repeat(8192) }]
    const many = Array.from({ length: 10 }, (_, n) => ['-H', `X-${n}: ${api.placeholder}`]).flat()
    for (const version of ['1.1', '2'])
      assert.match(
        await curl(...trusting('ours'), `--http${version}`, '-w', '%{http_code}', 'https://api.test/', ...many),
        /431$/,
      )
  })

  test('the proxy for secrets answers with an error if the port of a secret’s host is closed', async () => {
    const closed = createServer()
    await once(closed.listen(0, '127.0.0.1'), 'listening')
    destination = { address: '127.0.0.1', port: (closed.address() as AddressInfo).port }
    closed.close()
    await once(closed, 'close')
    assert.match(await curl(...trusting('ours'), 'https://api.test/'), /ECONNREFUSED/)
    await assert.rejects(curl(...trusting('world'), 'https://plain.test/'), /reset|SSL/i)
  })
})
