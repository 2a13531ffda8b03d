// Tests the certificates of a host: how they are requested, checked, written and renewed.
import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite, type TestContext, test } from 'node:test'
import { CertificateFiles } from '#src/kit/certificate-files.ts'
import { users } from '#src/kit/confined.ts'
import { TestAuthority } from '#src/kit/testing/authority.ts'
import { version } from '#src/kit/version.ts'
import { type HostCertificates, hostNameOf, type JoinQuestion } from '#src/wire/hosts.ts'
import { Complaint } from '../complaint.ts'
import { HostFiles } from './host-files.ts'
import { Renewal } from './renewal.ts'
import { Refused, renewCertificates, tradeToken } from './trade.ts'

const needsRoot = { skip: process.getuid?.() === 0 ? false : 'needs root' }

suite('certificates of a host', needsRoot, () => {
  const authority = new TestAuthority()

  const makeFiles = (context: TestContext) => {
    const path = mkdtempSync(join(tmpdir(), 'alcove-host-'))
    context.after(() => rmSync(path, { recursive: true, force: true }))
    return { path, files: new HostFiles({ path }) }
  }

  const answerTo = ({ keys }: Pick<JoinQuestion, 'keys'>, runnerId = 'second'): HostCertificates => ({
    ...{ runnerId, regionId: 'local', authority: authority.certificate, renewAfterSeconds: 86_400 },
    certificates: {
      runner: authority.certify(keys.runner, hostNameOf('runner', runnerId)),
      gate: authority.certify(keys.gate, hostNameOf('gate', runnerId)),
    },
  })

  type Question = JoinQuestion & { path: string; bearer: string | undefined }

  /** Starts a simulated control. The function `answer` returns status and body of the answer to each request. */
  const startControl = async (context: TestContext, answer: (question: Question) => [number, unknown]) => {
    const asked: Question[] = []
    const server = createServer(async (request: IncomingMessage, response) => {
      const body = JSON.parse((await request.toArray()).join('')) as JoinQuestion
      const question = { ...body, path: String(request.url), bearer: request.headers.authorization }
      asked.push(question)
      const [status, reply] = answer(question)
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(reply))
    })
    await once(server.listen(0, '127.0.0.1'), 'listening')
    context.after(() => server.close())
    return { url: new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`), asked }
  }

  test('the keys of a host are made only once, so an interrupted join is repeated with the same keys', (context) => {
    const { path, files } = makeFiles(context)
    const keys = files.publicKeys()
    assert.notEqual(keys.runner, keys.gate)
    assert.deepEqual(new HostFiles({ path }).publicKeys(), keys)
    assert.equal(files.endsAt, undefined)
    assert.equal(files.joined, undefined)
  })

  test('only root can read the runner’s key, and only root and the gate can read the gate’s key', (context) => {
    const { path, files } = makeFiles(context)
    files.write(answerTo({ keys: files.publicKeys() }))
    const ownerOf = (name: string) => {
      const { uid, gid, mode } = statSync(join(path, 'host', name))
      return [uid, gid, (mode & 0o777).toString(8)]
    }
    for (const name of ['authority.pem', 'certificate.pem', 'key.pem']) {
      assert.deepEqual(ownerOf(`runner/${name}`), [0, 0, '600'])
      assert.deepEqual(ownerOf(`gate/${name}`), [0, users.gate, '640'])
    }
    assert.deepEqual(ownerOf('runner'), [0, 0, '700'])
    assert.deepEqual(ownerOf('gate'), [0, users.gate, '750'])
    const { cert, key } = new CertificateFiles(files.directoryOf('gate')).options
    assert.ok(new X509Certificate(cert).subjectAltName?.includes('second.gate.'))
    assert.match(key, /PRIVATE KEY/)
    assert.ok((files.endsAt?.getTime() ?? 0) > Date.now() + 29 * 86_400_000)
  })

  test('a host sends its token, its version and two public keys to get certificates', async (context) => {
    const { files } = makeFiles(context)
    const control = await startControl(context, (question) => [200, answerTo(question)])
    const keys = files.publicKeys()
    const told = await tradeToken(control.url, { headers: {} }, { token: 'alr_1', keys })
    assert.equal(told.runnerId, 'second')
    assert.deepEqual(control.asked, [{ token: 'alr_1', version, keys, path: '/api/runners/join', bearer: undefined }])
  })

  test('the server’s own machine renews its certificates with the key of the machine’s runner', async (context) => {
    const { files } = makeFiles(context)
    const control = await startControl(context, (question) => [200, answerTo(question, 'local')])
    await renewCertificates(control.url, { headers: { authorization: 'Bearer own' } }, files.publicKeys())
    assert.deepEqual(
      control.asked.map(({ path, bearer }) => [path, bearer]),
      [['/api/runners/certificates', 'Bearer own']],
    )
  })

  test('if the server refuses a token, the error has the server’s message and status', async (context) => {
    const { files } = makeFiles(context)
    const control = await startControl(context, () => [409, { message: 'This token was traded by another machine.' }])
    await assert.rejects(
      tradeToken(control.url, { headers: {} }, { token: 'alr_1', keys: files.publicKeys() }),
      (error) => error instanceof Refused && error.status === 409 && /^This token was traded/.test(error.message),
    )
  })

  test('a host refuses certificates for a wrong key, for a wrong name or of a wrong authority', async (context) => {
    const { files } = makeFiles(context)
    const other = makeFiles(context)
    const stranger = new TestAuthority()
    const right = answerTo({ keys: files.publicKeys() })
    const wrong: unknown[] = [
      answerTo({ keys: other.files.publicKeys() }),
      { ...right, runnerId: 'third' },
      { ...right, authority: stranger.certificate },
      { ...right, certificates: { runner: right.certificates.gate, gate: right.certificates.runner } },
      { ...right, certificates: { runner: right.certificates.runner } },
      { ...right, renewAfterSeconds: 0 },
      { ...right, authority: 'nonsense' },
      {},
    ]
    const control = await startControl(context, () => [200, wrong[0]])
    while (wrong.length > 0) {
      await assert.rejects(
        tradeToken(control.url, { headers: {} }, { token: 'alr_1', keys: files.publicKeys() }),
        (error) => error instanceof Complaint && /did not answer with a certificate for this host/.test(error.message),
      )
      wrong.shift()
    }
  })

  test('if the server does not answer a host’s renewal of certificates, the error is one sentence about this', async (context) => {
    const { files } = makeFiles(context)
    const control = await startControl(context, () => [200, {}])
    const closed = new URL(control.url)
    closed.port = '1'
    await assert.rejects(renewCertificates(closed, { headers: {} }, files.publicKeys()), /does not answer/)
  })
})

suite('renewal of a host’s certificates', () => {
  const hour = 3_600_000

  const start = (steps: readonly (number | string)[], ends: readonly (Date | undefined)[]) => {
    const said: string[] = []
    const done = Promise.withResolvers<void>()
    let tries = 0
    const renewal = new Renewal({
      renew: async () => {
        const step = steps[tries]
        tries += 1
        if (tries === steps.length) done.resolve()
        if (typeof step === 'string') throw new Complaint(step)
        return step ?? 86_400
      },
      endsAt: () => ends[Math.min(tries, ends.length - 1)],
      say: (line) => said.push(line),
      retryMs: { first: 1, longest: 2 },
    })
    return { renewal, said, done: done.promise }
  }

  test('a host without certificates repeats its request until it gets some, and prints the reason only once', async () => {
    const steps = [...Array<string>(4).fill('control does not answer'), 86_400]
    const { renewal, said, done } = start(steps, [undefined])
    await done
    await renewal.hasCertificates
    await renewal[Symbol.asyncDispose]()
    assert.deepEqual(said, [
      'This host has no certificates yet, and tries again: control does not answer.',
      'The certificates of this host were renewed.',
    ])
  })

  test('the third failed renewal of certificates prints their expiry time; the first two print nothing', async () => {
    const end = new Date(Date.now() + 48 * hour)
    const quiet = start(['a', 'b', 86_400], [end])
    await quiet.done
    await quiet.renewal[Symbol.asyncDispose]()
    assert.deepEqual(quiet.said, [])
    const loud = start(['a', 'b', 'c', 'd', 86_400], [end])
    await loud.done
    await loud.renewal[Symbol.asyncDispose]()
    assert.equal(loud.said.length, 2)
    assert.ok(loud.said[0]?.includes(`could not be renewed: c. They are valid until ${end.toISOString()}`))
  })

  test('if the renewal of certificates is stopped, a program that waits for certificates gets an error', async () => {
    const { renewal } = start(['control does not answer'], [undefined])
    await renewal[Symbol.asyncDispose]()
    await assert.rejects(renewal.hasCertificates, /is ending/)
  })

  test('certificates are renewed at the interval that the server has set', async () => {
    const { renewal, done } = start([0.005, 0.005, 86_400], [new Date(Date.now() + hour)])
    await done
    await renewal[Symbol.asyncDispose]()
  })
})
