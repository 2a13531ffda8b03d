// Tests how a host joins a server: what it asks the server, and the error message for each refusal.
import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite, type TestContext, test } from 'node:test'
import type { TLSSocket } from 'node:tls'
import { authorityHashOf } from '#src/doctor/peer.ts'
import { TestAuthority } from '#src/kit/testing/authority.ts'
import { version } from '#src/kit/version.ts'
import { controlHostName, hostNameOf, type JoinQuestion } from '#src/wire/hosts.ts'
import { needsRoot } from '#test/needs-root.ts'
import { Complaint } from '../complaint.ts'
import { HostFiles } from './host-files.ts'
import { joinedServer } from './join-network.ts'

suite('joining a server over the network', { skip: needsRoot }, () => {
  const authority = new TestAuthority()
  const hash = authorityHashOf(new X509Certificate(authority.certificate))
  const tokenOf = (hex: string) => `alr_${hex}.${hash}`

  type Answer = 'takes' | 'loses' | { status: number; message: string }

  /**
   * Starts a simulated control whose answers the test sets. This control records the requests and the certificate names of the
   * callers.
   */
  const startControl = async (context: TestContext, { days = 30 } = {}) => {
    const asked: string[] = []
    const questions: JoinQuestion[] = []
    const state: { answer: Answer } = { answer: 'takes' }
    const certificates = { ...authority.newCertificate(controlHostName), requestCert: true, rejectUnauthorized: false }
    const server = createServer(certificates, async (request, response) => {
      const caller = (request.socket as TLSSocket).getPeerX509Certificate()?.subjectAltName ?? 'nobody'
      const text = (await request.toArray()).join('')
      const reply = (status: number, body: object) =>
        response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
      response.setHeader('alcove-version', version)
      if (request.url === '/api/runners/join' && request.method === 'GET') return reply(404, {})
      asked.push(`${request.method} ${request.url} by ${caller}`)
      const { answer } = state
      if (typeof answer === 'object') return reply(answer.status, { message: answer.message })
      if (request.url === '/api/runners/current') return reply(200, { id: 'second', regionId: 'local' })
      const question = JSON.parse(text) as JoinQuestion
      questions.push(question)
      if (answer === 'loses') return response.destroy()
      reply(200, {
        ...{ runnerId: 'second', regionId: 'local', authority: authority.certificate, renewAfterSeconds: 86_400 },
        certificates: {
          runner: authority.certify(question.keys.runner, hostNameOf('runner', 'second'), days),
          gate: authority.certify(question.keys.gate, hostNameOf('gate', 'second'), days),
        },
      })
    })
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const close = () => {
      server.closeAllConnections()
      server.close()
    }
    context.after(close)
    const url = new URL(`https://127.0.0.1:${(server.address() as AddressInfo).port}`)
    return { url, asked, questions, state, close }
  }

  const makeHost = (context: TestContext) => {
    const path = mkdtempSync(join(tmpdir(), 'alcove-host-'))
    context.after(() => rmSync(path, { recursive: true, force: true }))
    const said: string[] = []
    return {
      said,
      join: (url: URL, token?: string) =>
        joinedServer(
          url,
          { token },
          { data: { path }, files: new HostFiles({ path }), say: (line) => said.push(line) },
        ),
    }
  }

  const refusal = (pattern: RegExp) => (error: unknown) => error instanceof Complaint && pattern.test(error.message)

  test('a host joins with a token at its first start; at later starts it asks whether the server knows it', async (context) => {
    const control = await startControl(context)
    const host = makeHost(context)
    const { runnerId, regionId } = await host.join(control.url, tokenOf('0a'))
    assert.deepEqual([runnerId, regionId], ['second', 'local'])
    assert.equal((await host.join(control.url)).runnerId, 'second')
    assert.equal((await host.join(control.url, tokenOf('0a'))).runnerId, 'second')
    const again = `GET /api/runners/current by DNS:${hostNameOf('runner', 'second')}`
    assert.deepEqual(control.asked, ['POST /api/runners/join by nobody', again, again])
  })

  test('if the server’s answer to a join is lost, the host’s next start sends the same token and keys', async (context) => {
    const control = await startControl(context)
    const host = makeHost(context)
    control.state.answer = 'loses'
    await assert.rejects(host.join(control.url, tokenOf('0a')), refusal(/does not answer/))
    control.state.answer = 'takes'
    await host.join(control.url, tokenOf('0a'))
    assert.equal(control.questions.length, 2)
    assert.deepEqual(control.questions[0], control.questions[1])
  })

  test('a host that has joined before joins again if it gets a new token', async (context) => {
    const control = await startControl(context)
    const host = makeHost(context)
    await host.join(control.url, tokenOf('0a'))
    await host.join(control.url, tokenOf('0b'))
    assert.deepEqual(
      control.questions.map(({ token }) => token),
      [tokenOf('0a'), tokenOf('0b')],
    )
  })

  test('joining a host with a missing, wrong or unsuitable token fails, and the error says what to do', async (context) => {
    const control = await startControl(context)
    const host = makeHost(context)
    await assert.rejects(host.join(control.url), refusal(/has joined no server yet: give the token/))
    await assert.rejects(
      host.join(control.url, 'alr_0a'),
      refusal(/not for joining over the network.*alcove runner token NAME/),
    )
    assert.deepEqual(control.asked, [])
    control.state.answer = { status: 401, message: 'Unauthorized.' }
    await assert.rejects(
      host.join(control.url, tokenOf('0a')),
      refusal(/does not know this token.*"alcove runner token/),
    )
  })

  test('a host sends its join token only to a server of the certificate authority that the token names', async (context) => {
    const control = await startControl(context)
    const foreign = `alr_0a.${'A'.repeat(43)}`
    await assert.rejects(
      makeHost(context).join(control.url, foreign),
      refusal(/not the server that printed this token/),
    )
    assert.deepEqual(control.asked, [])
  })

  test('if the server refuses a host, for example because of its version, the error has the server’s reason', async (context) => {
    const control = await startControl(context)
    control.state.answer = { status: 409, message: 'This host has version 0.1.0, the server 0.9.0.' }
    await assert.rejects(
      makeHost(context).join(control.url, tokenOf('0a')),
      refusal(/refuses this machine: This host has version 0\.1\.0, the server 0\.9\.0\.$/),
    )
  })

  test('a host that was removed from the server ends at its next start, with one sentence with the reason', async (context) => {
    const control = await startControl(context)
    const host = makeHost(context)
    await host.join(control.url, tokenOf('0a'))
    control.state.answer = { status: 401, message: 'Unauthorized.' }
    await assert.rejects(host.join(control.url), refusal(/no longer accepts runner "second"/))
  })

  test('a host starts even if its server does not answer', async (context) => {
    const control = await startControl(context)
    const host = makeHost(context)
    await host.join(control.url, tokenOf('0a'))
    control.close()
    assert.equal((await host.join(control.url)).runnerId, 'second')
    assert.match(host.said.at(-1) ?? '', /does not answer.*start anyway/)
  })

  test('a host whose certificates have expired says how to get new ones', async (context) => {
    const control = await startControl(context, { days: -1 })
    const host = makeHost(context)
    await host.join(control.url, tokenOf('0a'))
    await assert.rejects(
      host.join(control.url),
      refusal(/certificates of this host expired at .*alcove runner token second/),
    )
  })
})
