import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, suite, test } from 'node:test'
import { Complaint } from '#src/up/complaint.ts'
import { callServer } from './call.ts'
import { sandboxes } from './sandboxes.ts'
import { writeSession } from './session.ts'

suite('a call of the command line to a server', () => {
  let next = { status: 200, body: '' }
  const server = createServer((_request, response) => response.writeHead(next.status).end(next.body)).listen(
    0,
    '127.0.0.1',
  )
  const scratch = mkdtempSync(join(tmpdir(), 'alcove-call-'))
  after(() => {
    server.close()
    rmSync(scratch, { recursive: true, force: true })
  })
  const urlOf = async () => {
    if (!server.listening) await once(server, 'listening')
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  }
  const call = async (status: number, body: string) => {
    next = { status, body }
    return await callServer<unknown>(`${await urlOf()}/api/x`, {})
  }
  const complaint = (sentence: RegExp) => (error: unknown) => error instanceof Complaint && sentence.test(error.message)

  test('`callServer` returns the answer of the server, or an empty object if the answer is empty', async () => {
    assert.deepEqual(await call(200, '[1]'), [1])
    assert.deepEqual(await call(204, ''), {})
  })

  test('`callServer` throws the message of a refusal, or its status if the answer is not JSON', async () => {
    await assert.rejects(call(409, '{"message":"There is one."}'), complaint(/^There is one\.$/))
    await assert.rejects(call(502, '<html>Bad Gateway</html>'), complaint(/ answered 502$/))
    await assert.rejects(call(200, '<html>Welcome</html>'), complaint(/ is no Alcove server$/))
  })

  test('a server that cannot be reached is reported in one sentence, without a stack trace', async () => {
    const away = complaint(/^the server at http:\/\/127\.0\.0\.1:1 does not answer: /)
    await assert.rejects(callServer('http://127.0.0.1:1/api/x', {}), away)
    const file = join(scratch, 'session.json')
    const endsAt = Date.now() + 3_600_000
    writeSession(file, { apiUrl: 'http://127.0.0.1:1/api', issuer: '', clientId: '', accessToken: 't', endsAt })
    await assert.rejects(sandboxes({ file, say: () => {} }), away)
  })
})
