// Tests which machines and calls the port for hosts refuses.
import assert from 'node:assert/strict'
import { createPublicKey } from 'node:crypto'
import { on, once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { after, before, suite, test } from 'node:test'
import { connect as connectTls } from 'node:tls'
import { Connections } from '#src/http/connections.ts'
import { certify, makeAuthority, spanOf } from '#src/kit/certificate.ts'
import { newKeyPair } from '#src/kit/testing/authority.ts'
import { hostNameOf } from '#src/wire/hosts.ts'
import { closedForVersion } from '#src/wire/runner-link.ts'
import { keys } from '#test/control/people.ts'
import {
  anotherControl,
  type HostsControl,
  type Joined,
  newMachine,
  type Shown,
  startWithHosts,
} from './testing/hosts.ts'

suite('the port for hosts', () => {
  let control: HostsControl
  let host: Joined
  before(async () => {
    control = await startWithHosts()
    host = await control.join('one')
  })
  after(() => control?.[Symbol.asyncDispose]())

  const statusOf = async (shown: Shown | undefined, path = '/runners/current', headers = {}) =>
    (await control.ask('GET', path, { ...(shown && { shown }), headers })).status

  const forged = (authority: { name: string; privateKey: string }, days: number): Shown => {
    const { publicKey, privateKey } = newKeyPair()
    const hosts = [hostNameOf('runner', 'one')]
    const holder = { publicKey: createPublicKey(publicKey), hosts, purposes: ['client'] as const }
    return { cert: certify(authority, holder, spanOf(days)), key: privateKey }
  }

  test('callers of the port for hosts need a certificate; an API key or runner key is ignored there', async () => {
    assert.equal(await statusOf(host.shows('runner')), 200)
    for (const key of [keys.runner, keys.admin, keys.proxy, await control.add('spare')])
      assert.equal(await statusOf(undefined, '/runners/current', { authorization: `Bearer ${key}` }), 401)
    assert.equal((await control.with(keys.runner).get('/runners/current')).status, 200)
  })

  test('the port for hosts refuses a certificate of another authority, even of one with the same name', async () => {
    for (const name of ['Alcove hosts', 'Somebody'])
      assert.equal(await statusOf(forged({ name, ...makeAuthority(name, spanOf(9)) }, 9)), 401)
  })

  test('the port for hosts refuses an expired certificate, and a certificate for a key that no host has', async () => {
    const { publicKey, privateKey } = newKeyPair()
    const valid = control.authority.certifyHost('runner', 'one', createPublicKey(publicKey))
    assert.equal(await statusOf({ cert: valid, key: privateKey }), 401)
    const ended = control.authority.certifyHost('runner', 'one', createPublicKey(host.keys.runner), -0.5)
    assert.equal(await statusOf({ cert: ended, key: host.privateKeys.runner }), 401)
  })

  test('gates may not use endpoints for runners, and runners may not use endpoints for gates', async () => {
    assert.equal(await statusOf(host.shows('gate')), 403)
    assert.equal(await statusOf(host.shows('runner'), '/proxy/ticket-keys'), 403)
    assert.equal(await statusOf(host.shows('gate'), '/proxy/ticket-keys'), 200)
    for (const [path, program] of [
      ['/runners/link', 'gate'],
      ['/proxy/link', 'runner'],
    ] as const) {
      const [error] = await once(control.link(path, host.shows(program)), 'error')
      assert.match(error.message, /403/)
    }
  })

  test('the port for hosts serves only endpoints for hosts; no other port serves `POST /runners/join`', async () => {
    for (const path of ['/runners', '/sandbox', '/users/me', '/health', '/config', '/', '/dashboard', '/oidc/jwks'])
      assert.equal(await statusOf(host.shows('runner'), path), 404, path)
    const question = { token: await control.add('other'), version: '0.0.0', keys: newMachine().keys }
    assert.equal((await control.as('nobody').post('/runners/join', question)).status, 404)
  })

  test('the port for hosts refuses TLS 1.2 and plain HTTP', async () => {
    const old = connectTls({ host: '127.0.0.1', port: control.port, maxVersion: 'TLSv1.2', rejectUnauthorized: false })
    const [error] = await once(old, 'error')
    assert.match(error.code, /PROTOCOL_VERSION/)
    const plain = connect(control.port, '127.0.0.1')
    plain.on('error', () => {})
    plain.write('GET /api/runners/current HTTP/1.1\r\nHost: a\r\n\r\n')
    await once(plain.resume(), 'close')
  })

  test('control refuses the next call of a removed runner, and closes the links of its host', async () => {
    const removed = await control.join('removed')
    const links = [
      control.link('/runners/link', removed.shows('runner')),
      control.link('/proxy/link', removed.shows('gate')),
    ]
    const stays = control.link('/proxy/link', host.shows('gate'))
    await Promise.all([...links, stays].map((link) => once(link, 'open')))
    const ended = Promise.all(links.map((link) => once(link, 'close')))
    assert.equal((await control.as('admin').delete('/runners/removed')).status, 204)
    assert.equal(await statusOf(removed.shows('runner')), 401)
    assert.equal(await statusOf(removed.shows('gate'), '/proxy/ticket-keys'), 401)
    await ended
    assert.equal(stays.readyState, stays.OPEN)
    stays.terminate()
  })

  test('if one control process removes a runner, every control process closes the runner’s connections', async () => {
    await using second = await anotherControl(control)
    const removed = await control.join('removed-elsewhere')
    const link = second.link('/proxy/link', removed.shows('gate'))
    await once(link, 'open')
    const ended = once(link, 'close')
    assert.equal((await control.as('admin').delete('/runners/removed-elsewhere')).status, 204)
    await ended
    const [error] = await once(second.link('/proxy/link', removed.shows('gate')), 'error')
    assert.match(error.message, /401/)
  })

  test('the connection of a host is closed when the host’s certificate expires', async (t) => {
    const seconds = 3600
    const gate = control.authority.certifyHost('gate', 'one', createPublicKey(host.keys.gate), seconds / 86_400)
    const link = control.link('/proxy/link', { cert: gate, key: host.privateKeys.gate })
    await once(link, 'open')
    const closed = once(link, 'close')
    control.connections.closeEnded()
    link.ping()
    await once(link, 'pong')
    const later = Date.now() + seconds * 1000
    const clock = t.mock.method(Date, 'now', () => later)
    control.connections.closeEnded()
    clock.mock.restore()
    await closed
  })

  test('control closes the link of a runner whose version does not work with control’s, and sends the reason', async () => {
    const link = control.link('/runners/link', (await control.join('old')).shows('runner'))
    await once(link, 'open')
    const capabilities = { cpu: 1, memoryGiB: 1, diskGiB: 1, runtime: '', runtimeVersion: '', hardDiskLimit: true }
    link.send(JSON.stringify({ type: 'hello', address: 'unix:/x', images: [], capabilities, version: '0.7.0' }))
    const [code, reason] = await once(link, 'close')
    assert.equal(code, closedForVersion)
    assert.match(
      String(reason),
      /^this host has version 0\.7\.0, the server 0\.0\.0-test: they may be at most one release/,
    )
    const [row] = await control.database.sql`select state, address from runners where id = 'old'`
    assert.deepEqual({ ...row }, { state: 'initializing', address: null })
  })

  test('a runner of another machine cannot report the gate of the server’s machine as its own gate', async () => {
    const link = control.link('/runners/link', (await control.join('liar')).shows('runner'))
    await once(link, 'open')
    const capabilities = { cpu: 1, memoryGiB: 1, diskGiB: 1, runtime: '', runtimeVersion: '', hardDiskLimit: true }
    const hello = { type: 'hello', address: 'unix:/x', images: [], capabilities, version: '0.0.1' }
    link.send(JSON.stringify({ ...hello, gate: { id: 'local' } }))
    const [code] = await once(link, 'close')
    assert.equal(code, 1008)
  })

  /** Sends `hello` over the link of a runner, with this gate or without a gate. Returns the gate that control then has stored. */
  const greet = async (joined: Joined, gate?: object) => {
    const link = control.link('/runners/link', joined.shows('runner'))
    await once(link, 'open')
    const capabilities = { cpu: 1, memoryGiB: 1, diskGiB: 1, runtime: '', runtimeVersion: '', hardDiskLimit: true }
    const hello = { type: 'hello', address: 'unix:/tmp/a.sock', images: [], capabilities, version: '0.0.1' }
    link.send(JSON.stringify({ ...hello, ...(gate && { gate }) }))
    for await (const [text] of on(link, 'message')) if (JSON.parse(String(text)).type === 'list') break
    link.close()
    const [row] = await control.database.sql`
      select gate_id, address, gate_public_url as url from runners where id = ${joined.answer.runnerId}`
    return { ...row }
  }

  test('if a joined runner reports no gate, control assigns the gate of the same host to the runner', async () => {
    const told = await greet(await control.join('silent'))
    assert.deepEqual(told, { gate_id: 'silent', address: 'unix:/tmp/a.sock', url: null })
  })

  test('after a host has joined, control stores only the first public URL that the host reports', async () => {
    const named = await control.join('named')
    const urlOf = async (joined: Joined, publicUrl?: string) =>
      (await greet(joined, { id: joined.answer.runnerId, ...(publicUrl && { publicUrl }) }))['url']
    assert.equal(await urlOf(named, 'https://named.example.com'), 'https://named.example.com')
    assert.equal(await urlOf(named, 'https://evil.example.com'), null)
    assert.equal(await urlOf(named), null)
    assert.equal(await urlOf(named, 'https://named.example.com'), 'https://named.example.com')
    const plain = await control.join('plain')
    assert.equal(await urlOf(plain), null)
    assert.equal(await urlOf(plain, 'https://evil.example.com'), null)
    const { body } = await control.as('admin').post('/runners/plain/token')
    assert.equal((await control.trade(body.apiKey, plain)).status, 200)
    assert.equal(await urlOf(plain, 'https://plain.example.com'), 'https://plain.example.com')
  })

  test('the limit of connections to the port for hosts is per host: many hosts may share an address', async (t) => {
    const { mock } = t.mock.method(Connections.prototype, 'admit')
    const other = await control.join('neighbour')
    for (const shown of [host.shows('runner'), other.shows('runner')]) assert.equal(await statusOf(shown), 200)
    assert.equal(await statusOf(other.shows('gate'), '/proxy/ticket-keys'), 200)
    assert.deepEqual(
      mock.calls.map((call) => call.arguments[2]).filter((owner) => owner === 'one' || owner === 'neighbour'),
      ['one', 'neighbour', 'neighbour'],
    )
  })

  test('if many connections make no TLS handshake, control closes the oldest ones: hosts can still connect', async () => {
    const most = 1024
    const link = control.link('/proxy/link', host.shows('gate'))
    await once(link, 'open')
    const sockets: Socket[] = []
    let closed = 0
    for (let count = 0; count < most + 8; count++) {
      const socket = connect(control.port, '127.0.0.1')
      socket.on('error', () => {}).once('close', () => closed++)
      sockets.push(socket)
      if (count % 64 === 0) await once(socket, 'connect')
    }
    try {
      assert.equal(await statusOf(host.shows('runner')), 200)
      assert.equal(link.readyState, link.OPEN)
      assert.ok(closed >= 8, `${closed} gave way`)
      assert.ok(closed < most / 2, `${closed} gave way`)
    } finally {
      link.terminate()
      for (const socket of sockets) socket.destroy()
    }
  })
})
