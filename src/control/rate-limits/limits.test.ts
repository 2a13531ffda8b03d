import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mock, suite, test } from 'node:test'
import { Daytona, DaytonaRateLimitError } from '@daytona/sdk'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { WebSocket } from 'ws'
import type { ControlRoute } from '#src/control/auth/route.ts'
import type { RateLimits } from '#src/control/settings/rates.ts'
import { type Reply, startControl } from '#test/control/harness.ts'
import { keys, organizations } from '#test/control/people.ts'
import { testSettings } from '#test/control/test-settings.ts'
import { bucketsOfRoutes } from './buckets.ts'
import { createLimits, limitHeaders } from './limits.ts'
import { countersAlone } from './testing/alone.ts'

const { ours } = organizations

const startLimited = (rateLimits: RateLimits, trustedProxies = 0) =>
  startControl({ settings: { rateLimits, trustedProxies } })

const minute = (limit: number) => ({ limit, ttlSeconds: 60 })

const headersOf = ({ headers }: Reply, bucket: string) => {
  const read = (name: string) => headers[`${name}-${bucket}`.toLowerCase()]
  return [read('X-RateLimit-Limit'), read('X-RateLimit-Remaining'), read('Retry-After')]
}

suite('rate limits', () => {
  test('by default there are no rate limits, and replies have no rate limit headers', async () => {
    await using app = await startControl()
    const reply = await app.as('member').get('/sandbox')
    assert.deepEqual(
      Object.keys(reply.headers).filter((name) => /ratelimit|retry/.test(name)),
      [],
    )
  })

  test('an organization over its rate limit gets 429; headers show the remaining calls and when to retry', async () => {
    await using app = await startLimited({ authenticated: minute(3) })
    const replies = [
      await app.as('member').get('/sandbox'),
      await app.as('owner').get('/sandbox/none'),
      // The viewer's call is refused, because a permission is missing, but it is counted like the other calls.
      await app.as('viewer').post('/api-keys', { name: 'x', permissions: [] }),
      await app.as('member').get('/sandbox'),
    ]
    assert.deepEqual(
      replies.map(({ status }) => status),
      [200, 404, 403, 429],
    )
    const [first, , third, over] = replies as [Reply, Reply, Reply, Reply]
    assert.deepEqual(headersOf(first, 'authenticated'), ['3', '2', undefined])
    assert.deepEqual(headersOf(third, 'authenticated').slice(0, 2), ['3', '0'])
    const [, remaining, retry] = headersOf(over, 'authenticated')
    assert.equal(remaining, '0')
    assert.ok(Number(retry) >= 1 && Number(retry) <= 60)
    assert.equal(over.headers['retry-after'], retry)
    assert.equal(over.headers['x-ratelimit-reset-authenticated'], retry)
    assert.deepEqual(
      [over.body.code, over.body.message],
      ['TOO_MANY_REQUESTS', 'More than 3 calls in 60 s (authenticated) (rate limit, too many requests).'],
    )
    assert.equal((await app.as('stranger').get('/sandbox')).status, 200, 'another organization is not theirs')
    assert.equal((await app.as('nobody').get('/health')).status, 200)
  })

  test('creates and forks of sandboxes have one rate limit; starts, stops and other changes have another', async () => {
    await using app = await startLimited({
      authenticated: minute(1),
      'sandbox-create': minute(2),
      'sandbox-lifecycle': minute(1),
    })
    const owner = app.as('owner')
    const make = await owner.post('/sandbox', {})
    // The create answers 503, because the default snapshot does not exist yet. It is counted nevertheless.
    assert.deepEqual([make.status, headersOf(make, 'sandbox-create')[1]], [503, '1'])
    assert.deepEqual(headersOf(make, 'authenticated'), [undefined, undefined, undefined])
    assert.equal((await owner.post('/sandbox/none/fork', {})).status, 404)
    assert.equal((await owner.post('/sandbox', {})).status, 429)
    assert.equal((await owner.delete('/sandbox/none')).status, 404)
    assert.equal((await owner.post('/sandbox/none/stop')).status, 429)
    assert.equal((await owner.get('/sandbox')).status, 200)
  })

  test('control serves every endpoint for which the table `bucketsOfRoutes` has a rate limit', async () => {
    await using app = await startControl()
    const routes = app.app.routes.map(({ method, path }) => `${method} ${path}`)
    assert.deepEqual(
      Object.keys(bucketsOfRoutes).filter((title) => !routes.includes(title)),
      [],
    )
  })

  test('an operator can set a rate limit for one organization, even if the server has no rate limits', async () => {
    await using app = await startControl()
    const change = (body: object) => app.as('admin').patch(`/organizations/${ours}/quota`, body)
    await change({ authenticatedRateLimit: 2, authenticatedRateLimitTtlSeconds: 3600 })
    const reply = await app.as('member').get('/sandbox')
    assert.deepEqual(headersOf(reply, 'authenticated').slice(0, 2), ['2', '1'])
    assert.ok(Number(reply.headers['x-ratelimit-reset-authenticated']) > 60)
    await app.as('member').get('/sandbox')
    assert.equal((await app.as('member').get('/sandbox')).status, 429)
    await change({ authenticatedRateLimit: 0 })
    assert.equal((await app.as('member').get('/sandbox')).status, 200)
  })

  test('an IP address with many 401 replies gets 429, even with a valid API key, but runners still get 200', async () => {
    await using app = await startLimited({ 'failed-auth': minute(2) })
    assert.equal((await app.with('dtn_wrong').get('/sandbox')).status, 401)
    const second = await app.as('nobody').get('/sandbox')
    assert.deepEqual([second.status, headersOf(second, 'failed-auth').slice(0, 2)], [401, ['2', '0']])
    for (const client of [app.with('dtn_wrong'), app.as('owner')]) {
      const reply = await client.get('/sandbox')
      assert.deepEqual(
        [reply.status, reply.body.message],
        [429, 'More than 2 calls in 60 s (failed-auth) (rate limit, too many requests).'],
      )
    }
    assert.equal((await app.with(keys.runner).get('/sandbox/for-runner')).status, 200)
    const validate = '/sandbox/ssh-access/validate?token=x'
    assert.equal((await app.as('ssh-gateway').get(validate)).status, 200)
    for (const caller of [app.as('owner'), app.with('wrong')]) assert.equal((await caller.get(validate)).status, 429)
    assert.equal((await app.as('nobody').get('/config')).status, 200)
  })

  test('rate limits use the IP address in X-Forwarded-For only if a trusted proxy wrote it', async () => {
    const from = (address: string) => ({ headers: { 'x-forwarded-for': address } })
    await using open = await startLimited({ anonymous: minute(1) })
    assert.equal((await open.as('nobody').get('/config', from('192.0.2.1'))).status, 200)
    assert.equal((await open.as('nobody').get('/config', from('192.0.2.2'))).status, 429)
    await using behind = await startLimited({ anonymous: minute(1) }, 1)
    assert.equal((await behind.as('nobody').get('/config', from('192.0.2.1'))).status, 200)
    assert.equal((await behind.as('nobody').get('/config', from('192.0.2.2'))).status, 200)
    // Only the last address in X-Forwarded-For counts, because the trusted proxy has written it. The caller may have written
    // the other addresses.
    assert.equal((await behind.as('nobody').get('/config', from('192.0.2.9, 192.0.2.2'))).status, 429)
    for (const odd of ['', ',', 'x'.repeat(5000), "'; drop"]) {
      assert.ok((await behind.as('nobody').get('/config', from(odd))).status < 500)
    }
  })

  test('the rate limit of calls without a credential includes calls of sign-in pages and of event sockets', async () => {
    for (const path of ['/oidc/.well-known/openid-configuration', '/oidc/auth', '/socket.io/?EIO=4']) {
      const settings = { rateLimits: { anonymous: minute(1) }, identity: testSettings.identity }
      await using app = await startControl({ settings })
      const ask = async () => (await app.app.server.inject({ method: 'GET', url: path })).statusCode
      assert.notEqual(await ask(), 429)
      assert.equal(await ask(), 429, path)
    }
  })

  test('a wrong credential at an event socket is counted as a failed sign-in of the caller’s IP address', async () => {
    await using app = await startLimited({ 'failed-auth': minute(2) })
    const base = await app.listen()
    const signIn = async (token: string) => {
      const socket = new WebSocket(`${base.replace('http', 'ws')}/api/socket.io/?EIO=4&transport=websocket`)
      const closed = once(socket, 'close')
      const heard: string[] = []
      socket.on('message', (data) => {
        heard.push(String(data))
        if (heard.length === 1) socket.send(`40${JSON.stringify({ token })}`)
        else socket.close()
      })
      await closed
      return heard[1]
    }
    assert.match((await signIn(keys.member)) ?? '', /^40/)
    assert.equal(await signIn('dtn_wrong'), '44{"message":"Unauthorized"}')
    assert.equal((await app.with('dtn_wrong').get('/sandbox')).status, 401)
    assert.equal(
      await signIn(keys.member),
      '44{"message":"More than 2 calls in 60 s (failed-auth) (rate limit, too many requests)."}',
    )
    assert.equal((await app.as('member').get('/sandbox')).status, 429)
  })

  test('scripts in web pages may read the rate limit headers', async () => {
    await using app = await startLimited({ anonymous: minute(1) })
    const reply = await app.as('nobody').get('/config', { headers: { origin: 'https://example.com' } })
    const exposed = String(reply.headers['access-control-expose-headers']).split(', ')
    assert.deepEqual(
      [...limitHeaders, 'Retry-After'].filter((name) => !exposed.includes(name)),
      [],
    )
  })

  test('the SDK reports an exceeded rate limit, with the rate limit headers', async () => {
    await using app = await startLimited({ authenticated: minute(1) })
    const base = await app.listen()
    await using daytona = new Daytona({ apiKey: keys.member, apiUrl: `${base}/api` })
    await assert.rejects(daytona.get('none'))
    await assert.rejects(daytona.get('none'), (error) => {
      assert.ok(error instanceof DaytonaRateLimitError)
      const headers = (error as { headers?: Record<string, string> }).headers ?? {}
      assert.equal(headers['x-ratelimit-remaining-authenticated'], '0')
      return true
    })
  })

  test('a rate limit admits calls again when its time window has ended', async () => {
    mock.timers.enable({ apis: ['Date', 'setTimeout'] })
    try {
      const limits = createLimits({ anonymous: { limit: 1, ttlSeconds: 60 } }, countersAlone())
      const route = { method: 'GET', path: '/config', needs: 'public' } as unknown as ControlRoute
      const ask = async () => {
        const request = { ip: '192.0.2.1' } as FastifyRequest
        const headers: Record<string, number> = {}
        const isLetIn = await limits
          .around(async () => ({}))(request, route)
          .then(
            () => true,
            () => false,
          )
        limits.tell(request, { headers: (more: object) => Object.assign(headers, more) } as unknown as FastifyReply)
        return [isLetIn, headers['X-RateLimit-Reset-anonymous'], headers['Retry-After']]
      }
      assert.deepEqual(await ask(), [true, 60, undefined])
      mock.timers.tick(59_000)
      assert.deepEqual(await ask(), [false, 1, 1])
      mock.timers.tick(1_000)
      assert.deepEqual(await ask(), [true, 60, undefined])
    } finally {
      mock.timers.reset()
    }
  })
})
