import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { Problem } from '#src/problems.ts'
import { OutboundError } from '../outbound/error.ts'
import type { OutboundRequest } from '../outbound/outbound.ts'
import { checkAccount } from './check-account.ts'

type Answer = { status: number; challenge?: string; body?: string }

const account = { host: 'docker.io', username: 'us', password: 'secret' }
const basic = `Basic ${Buffer.from('us:secret').toString('base64')}`
const hub: Answer = {
  status: 401,
  challenge: 'Bearer realm="https://auth.docker.io/token",service="registry.docker.io"',
}

/** Checks an account at a simulated image registry, which sends `answers` one after the other. */
const ask = async (answers: readonly (Answer | Error)[], host = account.host) => {
  const sent: OutboundRequest[] = []
  const outbound = {
    send: async (request: OutboundRequest) => {
      const answer = answers[sent.push(request) - 1]
      assert.ok(answer, `one question more: ${request.url}`)
      if (answer instanceof Error) throw answer
      const { status, challenge, body = '' } = answer
      return { status, headers: { 'www-authenticate': challenge }, body: Buffer.from(body) }
    },
  }
  const error: unknown = await checkAccount({ outbound, isPlain: false }, { ...account, host }).catch((e: unknown) => e)
  assert.ok(error === undefined || error instanceof Problem, String(error))
  return { sent, said: sent.map(({ url, headers }) => [url, headers?.['authorization']]), error }
}

suite('checking an account at an image registry', () => {
  test('an account at Docker Hub is checked at registry-1.docker.io, with a token from auth.docker.io', async () => {
    const { said, error } = await ask([hub, { status: 200, body: '{"token":"abc"}' }, { status: 200 }])
    assert.equal(error, undefined)
    assert.deepEqual(said, [
      ['https://registry-1.docker.io/v2/', undefined],
      ['https://auth.docker.io/token?service=registry.docker.io&account=us', basic],
      ['https://registry-1.docker.io/v2/', 'Bearer abc'],
    ])
  })

  test('an account for a registry is checked even if the registry allows anonymous access', async () => {
    const { said, error } = await ask([{ status: 200 }, { status: 401 }], 'a.example:5000')
    assert.deepEqual(said, [
      ['https://a.example:5000/v2/', undefined],
      ['https://a.example:5000/v2/', basic],
    ])
    assert.match(String(error), /does not accept this username and password/)
  })

  test('an account is accepted only if the registry’s answers confirm it; no error quotes these answers', async () => {
    const refused: [RegExp, readonly (Answer | Error)[]][] = [
      [/does not answer like a registry/, [hub, { status: 200, body: 'secret' }]],
      [/does not answer like a registry/, [hub, { status: 200, body: '{"token":"a\\r\\nx: y"}' }]],
      [/does not answer like a registry/, [hub, { status: 200, body: '{"token":7}' }]],
      [/does not answer like a registry/, [hub, { status: 302 }]],
      [/does not accept/, [hub, { status: 400, body: 'secret' }]],
      [/does not accept/, [hub, { status: 200, body: '{"access_token":"abc"}' }, { status: 401 }]],
      [/too many requests/, [{ status: 429 }]],
      [/an error of its own \(503\)/, [{ status: 503 }]],
      [/password was not sent/, [{ status: 401, challenge: 'Bearer realm="https://evil.example/token"' }]],
      [/password was not sent/, [{ status: 401, challenge: 'Bearer service="x"' }]],
      [/cannot be reached/, [hub, new OutboundError('not_public', 'secret')]],
      [/cannot be reached/, [new OutboundError('timeout', 'secret')]],
      [/^Problem: Too many servers/, [new OutboundError('busy', 'Too many servers are being called.')]],
      [/does not answer like a registry/, [new OutboundError('too_large', 'secret')]],
    ]
    for (const [expected, answers] of refused) {
      const { error } = await ask(answers)
      assert.ok(error instanceof Problem)
      assert.match(String(error), expected)
      assert.doesNotMatch(error.message, /secret/)
    }
  })

  test('all requests that check one registry account share a time limit of 15 seconds', async () => {
    const { sent } = await ask([hub, { status: 200, body: '{"token":"abc"}' }, { status: 200 }])
    assert.ok(sent.every(({ timeoutMilliseconds = 0 }) => timeoutMilliseconds > 0 && timeoutMilliseconds <= 15_000))
  })
})
