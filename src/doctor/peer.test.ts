// Tests how `alcove doctor --peer` checks control's port for runners and gates, and what it prints if a step fails.
import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { createServer as createPlain } from 'node:http'
import { createServer } from 'node:https'
import { type AddressInfo, createServer as createTcp, type Server } from 'node:net'
import { suite, type TestContext, test } from 'node:test'
import { TestAuthority } from '#src/kit/testing/authority.ts'
import { version } from '#src/kit/version.ts'
import { controlHostName } from '#src/wire/hosts.ts'
import { authorityHashOf, checkPeer, renderPeerChecks } from './peer.ts'

const listen = async (context: TestContext, server: Server & { closeAllConnections?: () => void }): Promise<URL> => {
  await once(server.listen(0, '127.0.0.1'), 'listening')
  context.after(() => {
    server.closeAllConnections?.()
    server.close()
  })
  return new URL(`https://127.0.0.1:${(server.address() as AddressInfo).port}`)
}

suite('`checkPeer`, the check whether this machine can use control’s port for runners and gates', () => {
  const authority = new TestAuthority()
  const hash = authorityHashOf(new X509Certificate(authority.certificate))

  /**
   * Starts a server like control's port for runners and gates. Like that port, it also accepts callers without a client
   * certificate.
   */
  const startHosts = (context: TestContext, { name = controlHostName, aheadMs = 0, ofServer = version } = {}) => {
    const options = { ...authority.newCertificate(name), requestCert: true, rejectUnauthorized: false }
    const server = createServer(options, (_request, response) => {
      response.sendDate = false
      response.writeHead(404, { date: new Date(Date.now() + aheadMs).toUTCString(), 'alcove-version': ofServer }).end()
    })
    return listen(context, server)
  }

  const failureOf = async (url: URL, authorityHash?: string) => {
    const { checks, authority: found } = await checkPeer(url, authorityHash)
    assert.equal(found, undefined)
    const failed = checks.filter(({ isOk }) => !isOk)
    assert.equal(failed.length, 1)
    assert.ok(failed[0]?.remedy)
    return `${failed[0].name}: ${failed[0].found}`
  }

  test('`checkPeer` reports each step of the check, and returns the certificate of the server’s authority', async (context) => {
    const { checks, authority: found } = await checkPeer(await startHosts(context), hash)
    assert.deepEqual(
      checks.map(({ name, isOk }) => [name, isOk]),
      [...['name', 'port', 'TLS', 'authority', 'clock', 'version'].map((name) => [name, true])],
    )
    assert.equal(found, new X509Certificate(authority.certificate).toString())
    assert.match(renderPeerChecks(checks), /^ok {4}authority {2}[\w-]{43}$/m)
    assert.match(checks.at(-1)?.found ?? '', /the server \d+\.\d+\.\d+$/)
  })

  test('without a token, `checkPeer` reports the certificate authority’s hash, and says that it is unchecked', async (context) => {
    const { checks, authority: found } = await checkPeer(await startHosts(context))
    assert.match(checks.find(({ name }) => name === 'authority')?.found ?? '', /no --token is given$/)
    assert.ok(found)
  })

  test('`checkPeer` fails at the step `name` if the host name cannot be resolved', async () => {
    assert.match(
      await failureOf(new URL('https://no-such-host.invalid:4603')),
      /^name: this machine cannot resolve the name no-such-host\.invalid/,
    )
  })

  test('`checkPeer` fails at the step `port` if nothing listens on the port', async (context) => {
    const server = createTcp()
    const url = await listen(context, server)
    server.close()
    await once(server, 'close')
    assert.match(await failureOf(url, hash), /^port: nothing listens at 127\.0\.0\.1:/)
  })

  test('`checkPeer` fails at the step `TLS` if the port serves plain HTTP or closes each connection', async (context) => {
    const plain = await listen(
      context,
      createPlain((_, response) => response.end()),
    )
    assert.match(await failureOf(plain, hash), /^TLS: .* does not speak TLS, so it is not the port for hosts$/)
    const ends = await listen(
      context,
      createTcp((socket) => socket.destroy()),
    )
    assert.match(await failureOf(ends, hash), /^TLS: .* ends the connection before TLS begins/)
  })

  test('`checkPeer` fails at the step `TLS` if the server’s certificate has another name', async (context) => {
    const url = await startHosts(context, { name: 'www.example.com' })
    assert.match(await failureOf(url, hash), /^TLS: .*another server \(DNS:www\.example\.com\)/)
  })

  test('`checkPeer` fails at the step `authority` if the token has the hash of another authority', async (context) => {
    const url = await startHosts(context)
    assert.match(await failureOf(url, 'A'.repeat(43)), /^authority: .* is not the server that printed this token/)
  })

  test('`checkPeer` fails at the step `authority` if another authority signed the server’s certificate', async (context) => {
    const other = new TestAuthority()
    const { cert, key } = other.newCertificate(controlHostName)
    const chain = { cert: `${cert}${authority.certificate}`, key }
    const url = await listen(context, createServer(chain))
    assert.match(await failureOf(url, hash), /^authority: /)
  })

  test('`checkPeer` fails at the step `clock` if the clocks of the two machines differ by a minute', async (context) => {
    assert.match(
      await failureOf(await startHosts(context, { aheadMs: 60_000 }), hash),
      /^clock: the clock of this machine is (59|60|61) s behind the clock of the server$/,
    )
    assert.match(
      await failureOf(await startHosts(context, { aheadMs: -60_000 }), hash),
      /ahead of the clock of the server$/,
    )
  })

  test('`checkPeer` fails at the step `version` if server and machine are more than one release apart', async (context) => {
    assert.match(
      await failureOf(await startHosts(context, { ofServer: '77.1.0' }), hash),
      /^version: this machine has version \S+, the server 77\.1\.0: they may be at most one release apart$/,
    )
  })
})
