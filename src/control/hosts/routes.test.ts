import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { after, before, suite, test } from 'node:test'
import { authorityHashIn, hostNameOf, hostPrograms } from '#src/wire/hosts.ts'
import { type HostsControl, newMachine, startWithHosts, version } from './testing/hosts.ts'

suite('POST /runners/join', () => {
  let control: HostsControl
  before(async () => {
    control = await startWithHosts()
  })
  after(() => control?.[Symbol.asyncDispose]())

  test('POST /runners/join returns certificates for the runner and the gate of a host, in return for a token', async () => {
    const token = await control.add('one')
    assert.equal(authorityHashIn(token), control.authority.hash)
    const machine = newMachine()
    const { status, body } = await control.trade(token, machine)
    assert.equal(status, 200, body.message)
    assert.deepEqual([body.runnerId, body.regionId, body.renewAfterSeconds], ['one', 'local', 86_400])
    const authority = new X509Certificate(body.authority)
    for (const program of hostPrograms) {
      const certificate = new X509Certificate(body.certificates[program])
      assert.ok(certificate.verify(authority.publicKey))
      assert.equal(certificate.subjectAltName, `DNS:${hostNameOf(program, 'one')}`)
      const days = (Date.parse(certificate.validTo) - Date.now()) / 86_400_000
      assert.ok(days > 29.9 && days <= 30, `${days}`)
    }
  })

  test('a machine with a runner’s certificate may call the endpoints for runners and open the runner’s link', async () => {
    const { shows } = await control.join('two')
    const { status, body } = await control.ask('GET', '/runners/current', { shown: shows('runner') })
    assert.deepEqual([status, body], [200, { id: 'two', regionId: 'local' }])
    const link = control.link('/runners/link', shows('runner'))
    const [message] = await once(link, 'message')
    assert.equal(JSON.parse(String(message)).runnerId, 'two')
    link.terminate()
    const gate = control.link('/proxy/link', shows('gate'))
    await once(gate, 'open')
    gate.terminate()
  })
})

suite('POST /runners/certificates, POST /runners/{runnerId}/token', () => {
  let control: HostsControl
  before(async () => {
    control = await startWithHosts()
  })
  after(() => control?.[Symbol.asyncDispose]())

  test('POST /runners/certificates renews certificates for the keys that a host has, and refuses other keys', async () => {
    const { keys, shows } = await control.join('one')
    const renew = (body: object) =>
      control.ask('POST', '/runners/certificates', { body: { version, keys, ...body }, shown: shows('runner') })
    const { status, body } = await renew({})
    assert.equal(status, 200, body.message)
    assert.equal(body.runnerId, 'one')
    const shown = { cert: body.certificates.runner, key: shows('runner').key }
    assert.equal((await control.ask('GET', '/runners/current', { shown })).status, 200)
    const other = await renew({ keys: newMachine().keys })
    assert.deepEqual(
      [other.status, other.body.message],
      [403, 'This host has other keys. Join again with a new token to change them.'],
    )
  })

  test('POST /runners/{runnerId}/token makes a new token; old certificates are valid until a machine joins with the new token', async () => {
    const { shows } = await control.join('two')
    const { status, body } = await control.as('admin').post('/runners/two/token')
    assert.deepEqual([status, body.id, body.regionId], [201, 'two', 'local'])
    const statusOfOld = async () => (await control.ask('GET', '/runners/current', { shown: shows('runner') })).status
    assert.equal(await statusOfOld(), 200)
    assert.equal((await control.trade(body.apiKey, newMachine())).status, 200)
    assert.equal(await statusOfOld(), 401)
  })
})
