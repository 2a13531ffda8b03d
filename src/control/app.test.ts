import assert from 'node:assert/strict'
import { once } from 'node:events'
import { suite, test } from 'node:test'
import { startControl } from '#test/control/harness.ts'
import { openDatabase } from './storage/database.ts'

suite('control as a server', () => {
  test('every reply has headers with API version and request id, even for refused calls and unknown paths', async () => {
    await using app = await startControl()
    for (const path of ['/health', '/users/me', '/no-such-thing']) {
      const { headers } = await app.as('nobody').get(path)
      assert.equal(headers['x-daytona-api-version'], '0.0.0-test', path)
      assert.match(String(headers['x-request-id']), /^[0-9a-f-]{36}$/, path)
    }
  })

  test('the API can be called at paths below /api, and at the same paths without /api', async () => {
    await using app = await startControl()
    for (const url of ['/api/health', '/health']) {
      assert.equal((await app.app.server.inject({ method: 'GET', url })).statusCode, 200, url)
    }
  })

  test('an error reply has its time, path, code and message in the fields that the public API defines', async () => {
    await using app = await startControl()
    const { status, body } = await app.as('owner').get('/regions/no-such?x=1')
    const { timestamp, ...rest } = body
    assert.equal(status, 404)
    assert.equal(new Date(timestamp).toISOString(), timestamp)
    assert.deepEqual(rest, {
      path: '/api/regions/no-such',
      statusCode: 404,
      error: 'Not Found',
      message: 'There is no such region (not found).',
      code: 'NOT_FOUND',
      source: 'DAYTONA_API',
      method: 'GET',
    })
  })

  test('a web page of any origin may call control with any header', async () => {
    await using app = await startControl()
    const preflight = await app.app.server.inject({
      method: 'OPTIONS',
      url: '/api/sandbox/some-box',
      headers: {
        origin: 'https://app.example.com',
        'access-control-request-method': 'DELETE',
        'access-control-request-headers': 'authorization,x-daytona-organization-id,traceparent',
      },
    })
    assert.equal(preflight.statusCode, 204)
    assert.equal(preflight.headers['access-control-allow-origin'], 'https://app.example.com')
    assert.match(String(preflight.headers['access-control-allow-methods']), /DELETE/)
    assert.equal(
      preflight.headers['access-control-allow-headers'],
      'authorization,x-daytona-organization-id,traceparent',
    )
    const reply = await app.as('nobody').get('/users/me', { headers: { origin: 'https://app.example.com' } })
    assert.deepEqual([reply.status, reply.headers['access-control-allow-origin']], [401, 'https://app.example.com'])
    assert.match(String(reply.headers['access-control-expose-headers']), /X-RateLimit-Remaining-sandbox-create/)
  })

  test('the reply to a call without the header Origin has no CORS headers, but has `Vary: Origin`', async () => {
    await using app = await startControl()
    for (const headers of [{}, { origin: '' }]) {
      const reply = await app.as('owner').get('/users/me', { headers })
      const cors = Object.keys(reply.headers).filter((name) => name.startsWith('access-control-'))
      assert.deepEqual([reply.status, cors, reply.headers['vary']], [200, [], 'Origin'])
    }
    const preflight = await app.app.server.inject({ method: 'OPTIONS', url: '/api/sandbox/some-box' })
    assert.deepEqual([preflight.statusCode, preflight.json().error], [404, 'Not Found'])
  })

  test('if connections to the database break, running calls succeed or get 503, and later calls succeed', async () => {
    await using app = await startControl()
    const knife = openDatabase(app.url, { max: 1 })
    const cut = () => knife.sql`
      select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and pid <> pg_backend_pid()`
    try {
      for (let round = 0; round < 5; round += 1) {
        const calls = Array.from({ length: 20 }, () => app.as('owner').get('/snapshots'))
        await cut()
        const statuses = new Set((await Promise.all(calls)).map(({ status }) => status))
        statuses.delete(200)
        statuses.delete(503)
        assert.deepEqual([...statuses], [])
      }
      for (const end = Date.now() + 20_000; Date.now() < end; ) {
        if ((await app.as('owner').get('/snapshots')).status === 200) return
      }
      assert.fail('it never answered 200 again')
    } finally {
      await knife.close()
    }
  })
})

suite('a reply that control sends only after its audit row is written', () => {
  test('a 403 reply is sent even if control sets a header of the reply to an invalid value', async () => {
    await using app = await startControl({ settings: { version: 'not a header: \u0100' } })
    const stop = new AbortController()
    const unanswered = once(process, 'unhandledRejection', { signal: stop.signal }).catch(() => [])
    const answer = app.as('member').post('/organizations/none/suspend', {})
    const first = await Promise.race([answer.then(({ status }) => status), unanswered])
    stop.abort()
    assert.equal(first, 403)
  })
})
