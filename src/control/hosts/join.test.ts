// Tests that only one machine gets certificates in return for the token of a runner, and that the token works only
// once.
import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { after, before, suite, test } from 'node:test'
import { createEncryption } from '#src/control/storage/encryption.ts'
import { newKeyPair } from '#src/kit/testing/authority.ts'
import { startControl } from '#test/control/harness.ts'
import { keys } from '#test/control/people.ts'
import { HostAuthority } from './authority.ts'
import { mostFailures } from './failed-joins.ts'
import { type Answer, type HostsControl, newMachine, startWithHosts, version } from './testing/hosts.ts'

suite('exchanging the token of a runner for certificates', () => {
  let control: HostsControl
  before(async () => {
    control = await startWithHosts()
  })
  after(() => control?.[Symbol.asyncDispose]())

  const current = async ({ body }: Answer, key: string) =>
    (await control.ask('GET', '/runners/current', { shown: { cert: body.certificates.runner, key } })).status

  test('a machine may repeat its join until it uses a certificate; no other machine may use the same token', async () => {
    const token = await control.add('again')
    const machine = newMachine()
    assert.equal((await control.trade(token, machine)).status, 200)
    const other = await control.trade(token, newMachine())
    assert.deepEqual([other.status, other.body.message], [403, 'Another machine has already used this token.'])
    const second = await control.trade(token, machine)
    assert.equal(second.status, 200)
    assert.equal(await current(second, machine.privateKeys.runner), 200)
    for (const each of [machine, newMachine()]) assert.equal((await control.trade(token, each)).status, 401)
  })

  test('after a machine has joined with a token, the API does not accept the token as a runner’s key', async () => {
    const token = await control.add('bearer')
    assert.equal((await control.with(token).get('/runners/current')).status, 200)
    assert.equal((await control.trade(token, newMachine())).status, 200)
    assert.equal((await control.with(token).get('/runners/current')).status, 401)
  })

  test('if several machines use one token at the same time, only one machine gets certificates', async () => {
    const token = await control.add('race')
    const replies = await Promise.all(Array.from({ length: 6 }, () => control.trade(token, newMachine())))
    assert.deepEqual(replies.map(({ status }) => status).sort(), [200, 403, 403, 403, 403, 403])
  })

  test('a new token of a runner makes the former token invalid, whether or not a machine has used it', async () => {
    const first = await control.add('newer')
    const machine = newMachine()
    assert.equal((await control.trade(first, machine)).status, 200)
    const { apiKey } = (await control.as('admin').post('/runners/newer/token')).body
    assert.equal((await control.trade(first, machine)).status, 401)
    const third = (await control.as('admin').post('/runners/newer/token')).body.apiKey
    assert.equal((await control.trade(apiKey, machine)).status, 401)
    assert.equal((await control.trade(third, newMachine())).status, 200)
  })

  test('a host gets certificates only for two different EC P-256 keys that no other host has', async () => {
    const token = await control.add('keys')
    const { keys: good } = newMachine()
    const pem = (key: { export: (options: object) => string | Buffer }) =>
      String(key.export({ type: 'spki', format: 'pem' }))
    const compressed = Buffer.from(good.gate.split('\n').slice(1, -2).join(''), 'base64')
    const wrong = {
      private: newKeyPair().privateKey,
      'P-384': pem(generateKeyPairSync('ec', { namedCurve: 'P-384' }).publicKey),
      secp256k1: pem(generateKeyPairSync('ec', { namedCurve: 'secp256k1' }).publicKey),
      Ed25519: pem(generateKeyPairSync('ed25519').publicKey),
      RSA: pem(generateKeyPairSync('rsa', { modulusLength: 1024 }).publicKey),
      certificate: control.authority.certificate,
      'no point': `-----BEGIN PUBLIC KEY-----\n${Buffer.concat([compressed.subarray(0, 27), Buffer.alloc(64, 7)]).toString('base64')}\n-----END PUBLIC KEY-----\n`,
      'two keys': good.gate + newKeyPair().publicKey,
      nothing: '',
    }
    for (const [what, gate] of Object.entries(wrong)) {
      const { status, body } = await control.trade(token, { ...newMachine(), keys: { ...good, gate } })
      assert.equal(status, 400, what)
      assert.match(body.message, /keys\.gate/, what)
    }
    const same = { ...newMachine(), keys: { runner: good.gate, gate: good.gate } }
    assert.equal((await control.trade(token, same)).status, 400)
    const { keys: foreign } = await control.join('foreign')
    for (const each of [
      { ...good, gate: foreign.gate },
      { ...good, runner: foreign.gate },
    ])
      assert.equal((await control.trade(token, { ...newMachine(), keys: each })).status, 400)
    assert.equal((await control.trade(token, newMachine())).status, 200)
  })

  test('a host whose version does not work with control’s gets 409 with the reason; its token stays valid', async () => {
    const token = await control.add('version')
    const { status, body } = await control.trade(token, newMachine(), '0.2.0')
    assert.equal(status, 409)
    assert.match(body.message, /^This host has version 0\.2\.0, the server 0\.0\.0-test: they may be at most one/)
    const { keys: ofHost, shows } = await control.join('version-two')
    const asked = { body: { version: '1.0.0', keys: ofHost }, shown: shows('runner') }
    assert.equal((await control.ask('POST', '/runners/certificates', asked)).status, 409)
    assert.equal((await control.trade(token, newMachine(), '0.1.0')).status, 200)
  })

  test('nobody can join with the key of the server’s own runner; the API makes no token for this runner', async () => {
    assert.equal((await control.trade(keys.runner, newMachine())).status, 401)
    assert.equal((await control.with(keys.runner).get('/runners/current')).status, 200)
    assert.equal((await control.as('admin').post('/runners/local/token')).status, 409)
    assert.equal((await control.as('admin').post('/runners/none/token')).status, 404)
  })

  test('with the runner key from the settings, the server’s own runner gets certificates for new key pairs', async () => {
    const shown = async () => {
      const machine = newMachine()
      const asked = { version, keys: machine.keys }
      const { status, body } = await control.with(keys.runner).post('/runners/certificates', asked)
      assert.equal(status, 200, body.message)
      return { cert: body.certificates.gate, key: machine.privateKeys.gate }
    }
    const ask = async (gate: { cert: string; key: string }) =>
      (await control.ask('GET', '/proxy/ticket-keys', { shown: gate })).status
    const first = await shown()
    assert.equal(await ask(first), 200)
    assert.equal(await ask(await shown()), 200)
    assert.equal(await ask(first), 401)
  })

  test('the port of the API gives no certificates for a token: machines join only at the port for hosts', async () => {
    const token = await control.add('sly')
    const asked = { version, keys: newMachine().keys }
    assert.equal((await control.with(token).post('/runners/certificates', asked)).status, 403)
    assert.equal((await control.trade(token, newMachine())).status, 200)
  })

  test('the token of a removed runner is refused, whether or not a machine has used it', async () => {
    const machine = newMachine()
    const [token, traded] = [await control.add('gone'), await control.add('gone-too')]
    assert.equal((await control.trade(traded, machine)).status, 200)
    for (const id of ['gone', 'gone-too'])
      assert.equal((await control.as('admin').delete(`/runners/${id}`)).status, 204)
    assert.equal((await control.trade(token, newMachine())).status, 401)
    assert.equal((await control.trade(traded, machine)).status, 401)
    assert.equal((await control.as('admin').post('/runners/gone/token')).status, 404)
  })
})

suite('joins and the certificate authority of a server', () => {
  test('an IP address that sends too many wrong tokens gets 429 with `retry-after`', async () => {
    await using control = await startWithHosts()
    const token = await control.add('one')
    for (let count = 0; count < mostFailures; count++) {
      const right = count === 3 ? await control.trade(await control.add('two'), newMachine()) : undefined
      assert.equal(right?.status ?? 200, 200)
      assert.equal((await control.trade(`alr_${count}`, newMachine())).status, 401)
    }
    const { status, headers } = await control.trade(token, newMachine())
    assert.equal(status, 429)
    assert.ok(Number(headers['retry-after']) > 800)
  })

  test('control processes that start at the same time make one certificate authority; its key is encrypted', async () => {
    await using control = await startControl()
    const opened = await Promise.all(Array.from({ length: 5 }, () => HostAuthority.open(control.parts)))
    assert.equal(new Set(opened.map(({ hash }) => hash)).size, 1)
    const rows = await control.database.sql`select private_key from host_authority`
    assert.equal(rows.length, 1)
    assert.doesNotMatch(rows[0]!['private_key'], /PRIVATE KEY/)
    const encryption = createEncryption([Buffer.alloc(32, 'other')])
    await assert.rejects(HostAuthority.open({ ...control.parts, encryption }), /ALCOVE_OLDER_ENCRYPTION_KEYS/)
  })

  test('without a port for hosts, tokens contain no hash of a certificate authority, and nobody can join', async () => {
    await using control = await startControl()
    const { body } = await control.as('admin').post('/runners', { name: 'one' })
    assert.match(body.apiKey, /^alr_[0-9a-f]{64}$/)
    const renewed = (await control.as('admin').post('/runners/one/token')).body.apiKey
    assert.match(renewed, /^alr_[0-9a-f]{64}$/)
    assert.equal((await control.with(body.apiKey).get('/runners/current')).status, 401)
    const asked = { version, keys: newMachine().keys }
    assert.equal((await control.with(renewed).post('/runners/certificates', asked)).status, 404)
  })
})
