import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import type { TLSSocket } from 'node:tls'
import { Pool } from 'undici'
import { WebSocketServer } from 'ws'
import { connectorFor, credentialFor } from './credential.ts'
import { LastingSocket } from './lasting-socket.ts'
import { createLog } from './log.ts'
import { TestAuthority } from './testing/authority.ts'

const controlName = 'control.test.internal'

/** Starts a server that requests a certificate. It records the names of its callers, and their bearer tokens. */
const startControl = async (authority: TestAuthority, name = controlName) => {
  const callers: (string | undefined)[] = []
  const server = createServer({
    ...authority.newCertificate(name),
    ...{ requestCert: true, rejectUnauthorized: true },
  })
  const note = (socket: TLSSocket, bearer: string | undefined) =>
    callers.push(bearer ?? socket.getPeerX509Certificate()?.subjectAltName)
  server.on('request', (request, response) => {
    note(request.socket as TLSSocket, request.headers.authorization)
    response.writeHead(200, { connection: 'close' }).end('{}')
  })
  const sockets = new WebSocketServer({ server })
  sockets.on('connection', (socket, request) => {
    note(request.socket as TLSSocket, request.headers.authorization)
    socket.send('welcome')
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const url = new URL(`https://127.0.0.1:${(server.address() as AddressInfo).port}`)
  const close = async () => {
    for (const client of sockets.clients) client.terminate()
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
  return { url, callers, [Symbol.asyncDispose]: close }
}

suite('the credential that a program shows to control', () => {
  const scratch = (context: { after: (step: () => void) => void }) => {
    const directory = mkdtempSync(join(tmpdir(), 'alcove-credential-'))
    context.after(() => rmSync(directory, { recursive: true, force: true }))
    return directory
  }

  test('a program that has no certificates, or calls control without https, sends its key to control', () => {
    const bearer = { headers: { authorization: 'Bearer secret' } }
    const url = new URL('https://control.example')
    assert.deepEqual(credentialFor(url, { key: 'secret', controlName }), bearer)
    const plain = { key: 'secret', certificatesDirectory: '/nowhere', controlName }
    assert.deepEqual(credentialFor(new URL('http://127.0.0.1:4600'), plain), bearer)
  })

  test('each new connection to control shows the current certificate and sends no key', async (context) => {
    const authority = new TestAuthority()
    await using control = await startControl(authority)
    const certificatesDirectory = scratch(context)
    authority.writeCertificate(certificatesDirectory, 'first.runner', 60)
    const credential = credentialFor(control.url, { key: 'secret', certificatesDirectory, controlName })
    const pool = new Pool(control.url.origin, { connect: connectorFor(credential, 3000) })
    context.after(() => pool.destroy())
    const ask = async () => {
      const { body } = await pool.request({ path: '/', method: 'GET', headers: credential.headers })
      await body.dump()
    }
    await ask()
    authority.writeCertificate(certificatesDirectory, 'renewed.runner')
    await ask()
    const heard = Promise.withResolvers<string>()
    using _link = new LastingSocket({
      ...{ url: control.url, credential, name: 'control', log: createLog('test', 'silent') },
      onText: heard.resolve,
    })
    assert.equal(await heard.promise, 'welcome')
    assert.deepEqual(control.callers, ['DNS:first.runner', 'DNS:renewed.runner', 'DNS:renewed.runner'])
  })

  test('a program sends nothing to a server whose certificate has another name or another authority', async (context) => {
    const authority = new TestAuthority()
    const other = new TestAuthority()
    const certificatesDirectory = scratch(context)
    authority.writeCertificate(certificatesDirectory, 'first.runner')
    await using impostor = await startControl(authority, 'first.gate')
    await using stranger = await startControl(other)
    for (const [{ url }, code] of [
      [impostor, /ALTNAME_INVALID$/],
      [stranger, /^SELF_SIGNED_CERT_IN_CHAIN$/],
    ] as const) {
      const credential = credentialFor(url, { key: 'secret', certificatesDirectory, controlName })
      const pool = new Pool(url.origin, { connect: connectorFor(credential, 3000) })
      context.after(() => pool.destroy())
      await assert.rejects(pool.request({ path: '/', method: 'GET' }), (error: NodeJS.ErrnoException) =>
        code.test(error.code ?? ''),
      )
    }
    assert.deepEqual([...impostor.callers, ...stranger.callers], [])
  })

  test('a program without certificate files connects to control as soon as the files exist', async (context) => {
    const authority = new TestAuthority()
    await using control = await startControl(authority)
    const certificatesDirectory = scratch(context)
    const credential = credentialFor(control.url, { key: '', certificatesDirectory, controlName })
    const heard = Promise.withResolvers<string>()
    using _link = new LastingSocket({
      ...{ url: control.url, credential, name: 'control', log: createLog('test', 'silent') },
      ...{ onText: heard.resolve, reconnectMs: { first: 5, longest: 20 } },
    })
    authority.writeCertificate(certificatesDirectory, 'first.runner')
    assert.equal(await heard.promise, 'welcome')
  })
})
