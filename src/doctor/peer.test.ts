// Each step on the way to the port for hosts, with the sentence for what may be wrong there.
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

suite('the way to the port for hosts', () => {
  const authority = new TestAuthority()
  const hash = authorityHashOf(new X509Certificate(authority.certificate))

  /** Starts a port for hosts, as control has it: it knows callers without a certificate too. */
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

  test('every step is said, and the certificate of the authority is returned', async (context) => {
    const { checks, authority: found } = await checkPeer(await startHosts(context), hash)
    assert.deepEqual(
      checks.map(({ name, isOk }) => [name, isOk]),
      [...['name', 'port', 'TLS', 'authority', 'clock', 'version'].map((name) => [name, true])],
    )
    assert.equal(found, new X509Certificate(authority.certificate).toString())
    assert.match(renderPeerChecks(checks), /^ok {4}authority {2}[\w-]{43}$/m)
    assert.match(checks.at(-1)?.found ?? '', /the server \d+\.\d+\.\d+$/)
  })

  test('without a token, the authority is shown and said to be unchecked', async (context) => {
    const { checks, authority: found } = await checkPeer(await startHosts(context))
    assert.match(checks.find(({ name }) => name === 'authority')?.found ?? '', /no --token is given$/)
    assert.ok(found)
  })

  test('a name that nobody knows is the first failure', async () => {
    assert.match(await failureOf(new URL('https://no-such-host.invalid:4603')), /^name: the name no-such-host\.invalid/)
  })

  test('a port where nothing listens', async (context) => {
    const server = createTcp()
    const url = await listen(context, server)
    server.close()
    await once(server, 'close')
    assert.match(await failureOf(url, hash), /^port: nothing listens at 127\.0\.0\.1:/)
  })

  test('a port that speaks plain HTTP, or that ends each connection, is not the port for hosts', async (context) => {
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

  test('a TLS server of another name is not the port for hosts', async (context) => {
    const url = await startHosts(context, { name: 'www.example.com' })
    assert.match(await failureOf(url, hash), /^TLS: .*another server \(DNS:www\.example\.com\)/)
  })

  test('a server of another authority than the token’s is refused', async (context) => {
    const url = await startHosts(context)
    assert.match(await failureOf(url, 'A'.repeat(43)), /^authority: .* is not the server that printed this token/)
  })

  test('a chain whose authority did not sign the server’s certificate is refused', async (context) => {
    const other = new TestAuthority()
    const { cert, key } = other.newCertificate(controlHostName)
    const chain = { cert: `${cert}${authority.certificate}`, key }
    const url = await listen(context, createServer(chain))
    assert.match(await failureOf(url, hash), /^authority: /)
  })

  test('a clock that differs by more than tickets allow is said with the difference', async (context) => {
    assert.match(
      await failureOf(await startHosts(context, { aheadMs: 60_000 }), hash),
      /^clock: the clock of this machine is (59|60|61) s behind that of the server$/,
    )
    assert.match(await failureOf(await startHosts(context, { aheadMs: -60_000 }), hash), /ahead of that of the server$/)
  })

  test('a server whose version is too far from this machine’s is said, with what to install', async (context) => {
    assert.match(
      await failureOf(await startHosts(context, { ofServer: '77.1.0' }), hash),
      /^version: this machine has version \S+, the server 77\.1\.0: they may be at most one release apart$/,
    )
  })
})
