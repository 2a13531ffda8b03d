import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http'
import { type AddressInfo, connect, createServer as createNetServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { connect as connectTls, createServer as createTlsServer } from 'node:tls'
import { WebSocket, WebSocketServer } from 'ws'
import { TestAuthority } from '#src/kit/testing/authority.ts'
import { notStarted } from '#src/problems.ts'
import { type HostProgram, hostNameOf } from '#src/wire/hosts.ts'
import type { GateBounds } from '../main.ts'
import { newSigner } from '../testing/signer.ts'
import { bodyOf, type Sides, startSides } from '../testing/simulated.ts'

let keys = 0
/** Returns a new key for each call, because the gate caches control's answer about a key for a second. */
const newBearer = () => {
  keys += 1
  return { authorization: `Bearer key-${keys}`, origin: 'https://page.example' }
}

type Certified = { name?: string; authority?: TestAuthority; days?: number }

/** Starts two gates of one server on two hosts. The sandbox is on the host `far`; callers use the gate `near`. */
const startTwo = async (
  { far: farCertified = {}, near: nearCertified = {} }: { far?: Certified; near?: Certified } = {},
  bounds: GateBounds = {},
) => {
  const own = new TestAuthority()
  const directory = mkdtempSync(join(tmpdir(), 'alcove-peers-'))
  const certify = (host: string, { name = hostNameOf('gate', host), authority = own, days }: Certified) => {
    authority.writeCertificate(join(directory, host), name, 60, days)
    return join(directory, host)
  }
  const signer = newSigner()
  const far = await startSides(bounds, {
    ...{ signer, gateId: 'far', certificatesDirectory: certify('far', farCertified) },
    peersListen: { host: '127.0.0.1', port: 0 },
  })
  const certificatesDirectory = certify('near', nearCertified)
  const near = await startSides(bounds, { signer, gateId: 'near', certificatesDirectory })
  const at = (address: string) => {
    near.control.answer = () => near.access({ gate: { id: 'far', address } })
  }
  at(`127.0.0.1:${far.peersPort}`)
  return {
    ...{ near, far, at, signer, authority: own, directory },
    call: (path: string, init: RequestInit = {}) =>
      fetch(`${near.url}/toolbox/box${path}`, { ...init, headers: { ...newBearer(), ...init.headers } }),
    async [Symbol.asyncDispose]() {
      await near[Symbol.asyncDispose]()
      await far[Symbol.asyncDispose]()
      rmSync(directory, { recursive: true, force: true })
    },
  }
}

const messageOf = async (answer: Response) => ((await answer.json()) as { message: string }).message

const preview = async ({ port }: Pick<Sides, 'port'>, headers: Record<string, string> = {}) => {
  const outgoing = httpRequest({
    port,
    headers: { host: '3000-box-id.proxy.test', ...newBearer(), ...headers },
    agent: false,
  })
  outgoing.end()
  const [answer] = (await once(outgoing, 'response')) as [IncomingMessage]
  return { status: answer.statusCode, text: await bodyOf(answer) }
}

/** Connects to the gate `far` with the certificate of a program of a host, sends a request, and returns the answer. */
const callAs = async (
  { far, authority }: { far: Sides; authority: TestAuthority },
  head: string,
  { program = 'gate' as HostProgram, host = 'near' } = {},
) => {
  const servername = hostNameOf('gate', 'far')
  const identity = authority.newCertificate(hostNameOf(program, host))
  const socket = connectTls({ port: far.peersPort!, host: '127.0.0.1', servername, ...identity })
  socket.write(`${head}\r\nHost: x\r\nConnection: close\r\n\r\n`)
  return bodyOf(socket).catch((error: Error) => error.message)
}

suite('calls that a gate passes on to the gate of the sandbox’s host', () => {
  test('a gate that passes a toolbox call to another host’s gate sends the body, but no credentials', async () => {
    await using two = await startTwo()
    const answer = await two.call('/process/execute?a=1', {
      method: 'POST',
      headers: { 'alcove-ticket': 'forged', 'x-request-id': 'r-1', cookie: 'c=1' },
      body: 'x'.repeat(100_000),
    })
    assert.deepEqual([answer.status, await answer.text()], [200, 'hello'])
    assert.equal(answer.headers.get('access-control-allow-origin'), 'https://page.example')
    const [seen] = two.far.seen
    assert.deepEqual([seen?.method, seen?.url], ['POST', '/toolbox/box-id/process/execute?a=1'])
    assert.equal(seen?.body.length, 100_000)
    assert.equal(seen?.headers['x-request-id'], 'r-1')
    const kept = Object.keys(seen!.headers).filter((name) => /authorization|cookie|alcove/.test(name))
    assert.deepEqual([kept, two.near.seen, two.far.asked], [[], [], []])
  })

  test('consecutive calls to another gate share a connection until one of the gates renews its certificate', async () => {
    await using two = await startTwo({}, { listener: { renewMs: 20 } })
    const ports = new Set<number | undefined>()
    two.far.toolbox.call = (request, response) => {
      ports.add(request.socket.remotePort)
      response.end()
    }
    for (let count = 0; count < 5; count += 1) assert.equal((await two.call('/a')).status, 200)
    assert.equal(ports.size, 1)
    for (const host of ['near', 'far'])
      two.authority.writeCertificate(join(two.directory, host), hostNameOf('gate', host))
    while (ports.size === 1) {
      await pause(20)
      assert.equal((await two.call('/a')).status, 200)
    }
  })

  test('a WebSocket through two gates carries messages both ways, and its close reaches the other side', async () => {
    await using two = await startTwo()
    const server = new WebSocketServer({ noServer: true })
    const closed = Promise.withResolvers<number>()
    two.far.toolbox.upgrade = (request, socket, head) =>
      server.handleUpgrade(request, socket, head, (client) => {
        client.on('message', (data) => client.send(`echo ${String(data)}`))
        client.on('close', closed.resolve)
      })
    const url = `${two.near.url.replace('http', 'ws')}/toolbox/box/process/pty/1/connect`
    const client = new WebSocket(url, { headers: newBearer() })
    await once(client, 'open')
    client.send('one')
    const [said] = await once(client, 'message')
    assert.equal(String(said), 'echo one')
    client.close(4321)
    assert.equal(await closed.promise, 4321)
  })

  test('if the sandbox of a terminal stopped, a WebSocket through two gates gets the reason as a message', async () => {
    await using two = await startTwo()
    two.far.toolbox.refusal = notStarted()
    const url = `${two.near.url.replace('http', 'ws')}/toolbox/box/process/pty/1/connect`
    const client = new WebSocket(url, { headers: newBearer() })
    const closed = once(client, 'close')
    const [message] = await once(client, 'message')
    assert.match(JSON.parse(String(message)).error, /not running/)
    assert.equal((await closed)[0], 1011)
  })

  test('a preview call through two gates gets an answer, or an error if the server or sandbox does not run', async () => {
    await using two = await startTwo()
    assert.deepEqual(await preview(two.near), { status: 200, text: 'hello from inside' })
    assert.deepEqual(two.far.dialled, ['box-id:3000'])
    assert.equal(two.far.seen[0]?.headers.authorization, undefined)
    two.far.dialRefusal = 'connect'
    const refused = await preview(two.near)
    assert.equal(refused.status, 502)
    assert.match(refused.text, /Nothing listens on port 3000/)
    two.far.status = 'stopped'
    assert.equal((await preview(two.near)).status, 409)
  })

  test('through two gates, a toolbox waits while its caller reads nothing, and notices that the caller left', async () => {
    await using two = await startTwo()
    let sent = 0
    const ended = Promise.withResolvers<void>()
    two.far.toolbox.call = (_request, response) => {
      const piece = Buffer.alloc(64 * 1024)
      const write = () => {
        while (!response.destroyed && response.write(piece)) sent += piece.length
        sent += piece.length
      }
      response.on('drain', write).once('close', ended.resolve)
      write()
    }
    const caller = connect(two.near.port, '127.0.0.1')
    caller.pause()
    caller.write('GET /toolbox/box/files/download HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer key-1\r\n\r\n')
    let before = -1
    while (sent === 0 || sent !== before) {
      before = sent
      await pause(300)
    }
    assert.ok(sent < 64 * 1024 * 1024, `the toolbox has written ${sent} bytes`)
    caller.destroy()
    await ended.promise
  })

  test('a large upload through two gates arrives whole, at the speed at which the toolbox reads it', async () => {
    await using two = await startTwo()
    const bytes = 48 * 1024 * 1024
    two.far.toolbox.call = async (request, response) => {
      let count = 0
      for await (const piece of request) count += (piece as Buffer).length
      response.end(String(count))
    }
    const answer = await two.call('/files/upload', { method: 'POST', body: Buffer.alloc(bytes) })
    assert.equal(await answer.text(), String(bytes))
  })

  test('if the gate of another host dies, calls through it end, and the next call gets 503 with a reason', async () => {
    await using two = await startTwo()
    two.far.toolbox.call = (_request, response) => void response.write('beginning')
    const answer = await two.call('/a')
    const reader = answer.body!.getReader()
    await reader.read()
    await two.far[Symbol.asyncDispose]()
    await assert.rejects(reader.read())
    const next = await two.call('/a')
    assert.equal(next.status, 503)
    assert.match(await messageOf(next), /host of this sandbox does not answer/)
    assert.equal((await preview(two.near)).status, 503)
  })

  test('if neither the gate nor control can reach a host, the 503 says since when the host is silent', async () => {
    await using two = await startTwo()
    const silentSince = '2026-11-27T00:00:00.000Z'
    const gate = { id: 'far', address: `127.0.0.1:${two.far.peersPort}` }
    two.near.control.answer = () => two.near.access({ gate, silentSince })
    assert.equal((await two.call('/a')).status, 200)
    await two.far[Symbol.asyncDispose]()
    const answer = await two.call('/a')
    assert.equal(answer.status, 503)
    assert.match(await messageOf(answer), /does not answer.* Control has not heard it since 2026-11-27T00:00:00\.000Z/)
    const { status, text } = await preview(two.near)
    assert.deepEqual([status, /has not heard it since/.test(text)], [503, true])
  })

  test('a gate notices, at a connect and during an open call, that another host no longer answers', async () => {
    await using two = await startTwo({}, { peers: { connectMs: 300, beatMs: 50, silentMs: 300 } })
    const silent = createNetServer(() => {})
    await once(silent.listen(0, '127.0.0.1'), 'listening')
    two.at(`127.0.0.1:${(silent.address() as AddressInfo).port}`)
    const answer = await two.call('/a')
    assert.equal(answer.status, 503)
    assert.match(await messageOf(answer), /host of this sandbox does not answer/)
    silent.close()
    // `middle`: a TCP proxy in front of the gate `far`. When `isCut` is true, it passes no more bytes and closes no connection.
    let isCut = false
    const middle = createNetServer((socket) => {
      const other = connect(two.far.peersPort!, '127.0.0.1')
      socket.on('data', (bytes) => isCut || other.write(bytes)).on('error', () => {})
      other.on('data', (bytes) => isCut || socket.write(bytes)).on('error', () => {})
      socket.on('close', () => other.destroy())
    })
    await once(middle.listen(0, '127.0.0.1'), 'listening')
    two.at(`127.0.0.1:${(middle.address() as AddressInfo).port}`)
    const held: ServerResponse[] = []
    two.far.toolbox.call = (_request, response) => void held.push(response)
    const running = two.call('/b')
    while (held.length === 0) await pause(10)
    // No bytes come on the open call, but the other gate answers that it is alive. So the call must go on.
    await pause(800)
    assert.equal(held[0]?.destroyed, false)
    isCut = true
    assert.equal((await running).status, 503)
    middle.close()
  })

  test('a gate sends no calls to a gate whose certificate is wrong, and tells its callers the reason', async () => {
    const stranger = new TestAuthority()
    for (const [far, sentence] of [
      [{ name: hostNameOf('gate', 'third') }, /certificate of another host/],
      [{ name: hostNameOf('runner', 'far') }, /certificate of another host/],
      [{ days: -1 }, /certificate of its gate has expired/],
      [{ authority: stranger }, /no certificate of this server/],
    ] as const) {
      await using two = await startTwo({ far })
      const answer = await two.call('/a')
      assert.equal(answer.status, 503)
      assert.match(await messageOf(answer), sentence)
      assert.deepEqual(two.far.seen, [])
    }
  })

  test('if another gate refuses a gate’s certificate, the callers of the refused gate get the reason', async () => {
    await using runner = await startTwo({ near: { name: hostNameOf('runner', 'near') } })
    const answer = await runner.call('/a')
    assert.equal(answer.status, 503)
    assert.match(await messageOf(answer), /refuses the certificate of this gate \(not the name of a gate\)/)
    assert.match(await callAs(runner, 'GET /alive HTTP/1.1', { program: 'runner' }), /^HTTP\/1.1 403 /)
    assert.match(await callAs(runner, 'GET /alive HTTP/1.1'), /^HTTP\/1.1 204 /)
    assert.deepEqual(runner.far.seen, [])
  })

  test('a gate without a valid certificate cannot call sandboxes of other hosts, and tells callers why', async () => {
    await using expired = await startTwo({ near: { days: -1 } })
    assert.match(await messageOf(await expired.call('/a')), /refuses the certificate of this gate \(CERT_HAS_EXPIRED\)/)
    assert.equal((await preview(expired.near)).status, 503)
    rmSync(join(expired.directory, 'near'), { recursive: true })
    const missing = await expired.call('/b')
    assert.equal(missing.status, 503)
    assert.match(await messageOf(missing), /cannot read its own certificate/)
    assert.deepEqual([expired.far.seen, expired.far.wanted], [[], []])
  })

  test('a gate closes a call to another gate that sends endless interim answers (1xx)', async () => {
    await using two = await startTwo()
    const identity = two.authority.newCertificate(hostNameOf('gate', 'far'))
    const endless = createTlsServer(identity, (socket) => {
      const sending = setInterval(() => socket.write('HTTP/1.1 103 Early Hints\r\n\r\n'), 2)
      socket.on('error', () => {}).once('close', () => clearInterval(sending))
    })
    await once(endless.listen(0, '127.0.0.1'), 'listening')
    two.at(`127.0.0.1:${(endless.address() as AddressInfo).port}`)
    assert.equal((await two.call('/a', { signal: AbortSignal.timeout(8000) })).status, 503)
    endless.close()
  })

  test('if the address of another gate answers without HTTP or TLS, the caller gets 503 and not 500', async () => {
    await using two = await startTwo()
    const identity = two.authority.newCertificate(hostNameOf('gate', 'far'))
    const rubbish = createTlsServer(identity, (socket) => {
      socket.on('error', () => {}).once('data', () => socket.end('what?\r\n\r\n'))
    })
    const plain = createNetServer((socket) => socket.on('error', () => {}).end('SSH-2.0-x\r\n'))
    for (const server of [rubbish, plain]) {
      await once(server.listen(0, '127.0.0.1'), 'listening')
      two.at(`127.0.0.1:${(server.address() as AddressInfo).port}`)
      const answer = await two.call('/a')
      const shown = await preview(two.near)
      server.close()
      assert.deepEqual([answer.status, shown.status], [503, 503])
      assert.match(await messageOf(answer), /no gate/)
    }
  })

  test('many silent connections without a certificate do not prevent other gates from connecting', async () => {
    await using two = await startTwo({}, { listener: { mostUnproved: 20 } })
    const strangers = Array.from({ length: 60 }, () => connect(two.far.peersPort!, '127.0.0.1').on('error', () => {}))
    await Promise.all(strangers.slice(0, 40).map((socket) => socket.destroyed || once(socket, 'close')))
    assert.equal((await two.call('/a')).status, 200)
    for (const socket of strangers) socket.destroy()
  })

  test('if one gate opens too many connections, its oldest connections are closed; other gates can connect', async () => {
    await using two = await startTwo({}, { listener: { mostProved: 20 } })
    assert.equal((await two.call('/a')).status, 200)
    const identity = two.authority.newCertificate(hostNameOf('gate', 'evil'))
    const options = { port: two.far.peersPort!, host: '127.0.0.1', servername: hostNameOf('gate', 'far'), ...identity }
    const greedy = Array.from({ length: 60 }, () => connectTls(options).on('error', () => {}))
    for (const socket of greedy) socket.write('GET / HT')
    await Promise.all(greedy.slice(0, 30).map((socket) => socket.destroyed || once(socket, 'close')))
    assert.equal((await two.call('/b')).status, 200)
    for (const socket of greedy) socket.destroy()
  })

  test('the gate of another host reaches a sandbox only with a ticket for that sandbox and that call', async () => {
    await using two = await startTwo()
    const ticket = two.signer.sign()
    const forged = newSigner().sign()
    const port = (shown: string) =>
      `GET /port/box-id/3000 HTTP/1.1\r\nUpgrade: alcove-port\r\nConnection: Upgrade\r\nalcove-ticket: ${shown}`
    const answers = [
      await callAs(two, port(ticket)),
      await callAs(two, port(forged)),
      await callAs(two, port('')),
      await callAs(two, port(two.signer.sign({ sandboxId: 'other', allowed: { kind: 'port', port: 3000 } }))),
      await callAs(two, port(two.signer.sign({ allowed: { kind: 'port', port: 3001 } }))),
    ]
    assert.deepEqual(
      answers.map((text) => text.slice(9, 12)),
      ['403', '401', '401', '401', '403'],
    )
    assert.deepEqual([two.far.wanted, two.far.dialled], [[], []])
  })

  test('a gate refuses a ticket that names the gate of another host, whatever runner address the ticket has', async () => {
    await using two = await startTwo()
    const more = { gateId: 'evil', runnerAddress: 'unix:/tmp/mine.sock' }
    const ticket = two.signer.sign({ allowed: { kind: 'port', port: 3000 }, ...more })
    const head = 'GET /port/box-id/3000 HTTP/1.1\r\nUpgrade: alcove-port\r\nConnection: Upgrade'
    assert.match(await callAs(two, `${head}\r\nalcove-ticket: ${ticket}`), /^HTTP\/1.1 401 /)
    assert.deepEqual([two.far.wanted, two.far.dialled], [[], []])
  })

  test('a gate finds a runner by the address in the ticket, and ignores an address that another gate sends', async () => {
    await using two = await startTwo()
    const allowed = { kind: 'port', port: 3000 } as const
    two.far.insideSocket = (socket) => void socket.end('bytes from inside')
    for (const more of [{ runnerAddress: 'unix:/run/second.sock', gateId: 'far' }, {}]) {
      const head = 'GET /port/box-id/3000 HTTP/1.1\r\nUpgrade: alcove-port\r\nConnection: Upgrade'
      const ticket = two.signer.sign({ allowed, ...more })
      const answer = await callAs(two, `${head}\r\nalcove-ticket: ${ticket}\r\nrunner-address: unix:/tmp/mine.sock`)
      assert.match(answer, /^HTTP\/1.1 101 .*bytes from inside$/s)
    }
    assert.deepEqual(
      two.far.wanted.map(({ runnerAddress }) => runnerAddress),
      ['unix:/run/second.sock', ''],
    )
  })
})
