import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, suite, test } from 'node:test'
import { callServer } from './call.ts'
import { exitCodes, Failure } from './failure.ts'
import { Interrupted } from './interruption.ts'

suite('a call of the command line to a server', () => {
  let next: { status: number; body: string; headers?: Record<string, string> } = { status: 200, body: '' }
  const server = createServer((_request, response) =>
    response.writeHead(next.status, { 'x-request-id': 'r1', ...next.headers }).end(next.body),
  ).listen(0, '127.0.0.1')
  after(() => server.close())
  const urlOf = async () => {
    if (!server.listening) await once(server, 'listening')
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  }
  const call = async (status: number, body: string) => {
    next = { status, body }
    return await callServer<unknown>(`${await urlOf()}/api/x`, {})
  }
  const failure = (sentence: RegExp, exitCode: number) => (error: unknown) =>
    error instanceof Failure && sentence.test(error.message) && error.exitCode === exitCode

  test('`callServer` returns the answer of the server, or an empty object if the answer is empty', async () => {
    assert.deepEqual(await call(200, '[1]'), [1])
    assert.deepEqual(await call(204, ''), {})
  })

  test('`callServer` throws the server’s message and request id or, without a message, the HTTP status', async () => {
    await assert.rejects(call(409, '{"message":"There is one."}'), failure(/^There is one\. \(request r1\)$/, 65))
    await assert.rejects(
      call(502, '<html>Bad Gateway</html>'),
      failure(/ answered with status 502\. \(request r1\)$/, 70),
    )
    await assert.rejects(call(200, '<html>Welcome</html>'), failure(/ is not an Alcove server\.$/, 70))
  })

  test('`callServer` gives each kind of error answer of the server an exit code of its own', async () => {
    const codes = { 400: 65, 401: 77, 403: 77, 404: 66, 408: 75, 422: 65, 429: 75, 500: 70, 503: 75 }
    for (const [status, code] of Object.entries(codes)) {
      await assert.rejects(call(Number(status), '{"message":"No."}'), failure(/^No\. /, code), status)
    }
  })

  test('the error for a refused call contains no characters that a terminal would interpret', async () => {
    await assert.rejects(call(400, JSON.stringify({ message: 'a\u001b[2Jb' })), failure(/^a\\u\{1b\}\[2Jb /, 65))
  })

  test('`alcove` does not follow a redirect of the server, so no credential goes to another address', async () => {
    let heard = 0
    const other = createServer((_request, response) => {
      heard += 1
      response.end('{}')
    }).listen(0, '127.0.0.1')
    try {
      await once(other, 'listening')
      const location = `http://127.0.0.1:${(other.address() as AddressInfo).port}/api/x`
      for (const status of [301, 302, 303, 307, 308]) {
        next = { status, body: '', headers: { location } }
        const called = callServer(`${await urlOf()}/api/x`, { headers: { 'x-daytona-preview-token': 'secret' } })
        await assert.rejects(called, failure(/ redirects to http:\/\/127\.0\.0\.1:\d+\/api\/x\. /, 65))
      }
      assert.equal(heard, 0)
    } finally {
      other.close()
    }
  })

  test('a server that cannot be reached is reported in one sentence, without a stack trace', async () => {
    const away = failure(/^The server at http:\/\/127\.0\.0\.1:9 does not answer: /, exitCodes.unreachable)
    await assert.rejects(callServer('http://127.0.0.1:9/api/x'), away)
  })

  test('a call that the user interrupts throws `Interrupted` and not a failure', async () => {
    const interrupted = new AbortController()
    interrupted.abort(new Interrupted(130))
    await assert.rejects(callServer(`${await urlOf()}/api/x`, { signal: interrupted.signal }), Interrupted)
  })
})
