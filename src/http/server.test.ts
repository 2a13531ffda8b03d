import assert from 'node:assert/strict'
import { once } from 'node:events'
import { Agent, type IncomingMessage, request } from 'node:http'
import { json } from 'node:stream/consumers'
import { suite, test } from 'node:test'
import Type from 'typebox'
import { silentLog } from '#src/kit/log.ts'
import { Problem } from '#src/problems.ts'
import { boundIncoming } from './incoming-bodies.ts'
import { type Route, routesOf } from './route.ts'
import { createServer } from './server.ts'

const route = routesOf<object, 'public'>()
const Named = Type.Object({ name: Type.String() })
const routes: Route<object, 'public'>[] = [
  route({
    method: 'POST',
    path: '/plain',
    needs: 'public',
    summary: 'takes no body',
    replies: { 200: null },
    run: ({ reply }) => void reply.send('done'),
  }),
  route({
    method: 'POST',
    path: '/named',
    needs: 'public',
    summary: 'takes a body',
    body: Named,
    replies: { 200: Named },
    run: ({ body }) => body,
  }),
]

/** Starts a server that is closed at the end of the test, even if the test fails. */
const start = async (parts: Partial<Parameters<typeof createServer>[0]> = {}) => {
  const server = await createServer({
    routes,
    prefixes: [''],
    source: 'TEST',
    guard: () => ({}),
    log: silentLog(),
    ...parts,
  })
  return {
    server,
    [Symbol.asyncDispose]: async () => {
      server.server.closeAllConnections()
      await server.close()
    },
  }
}

suite('content types of request bodies', () => {
  const form = { 'content-type': 'application/x-www-form-urlencoded' }

  test('a POST that needs no body answers 200 without a body, whatever its content type is', async () => {
    await using started = await start()
    const { server } = started
    for (const headers of [{}, form, { 'content-type': 'application/json' }]) {
      const reply = await server.inject({ method: 'POST', url: '/plain', headers })
      assert.equal(reply.statusCode, 200, JSON.stringify(headers))
    }
  })

  test('a body whose content type is not JSON answers 415, and the message names the right header', async () => {
    await using started = await start()
    const { server } = started
    const post = async (url: string, headers: Record<string, string>, payload: string) => {
      const reply = await server.inject({ method: 'POST', url, headers, payload })
      return [reply.statusCode, reply.json().message]
    }
    // Send the body with three content types: the default of curl, the default of fetch for a string, and none.
    for (const headers of [form, { 'content-type': 'text/plain;charset=UTF-8' }, {}]) {
      assert.deepEqual(
        await post('/named', headers, '{"name":"x"}'),
        [415, 'Send JSON, with the header Content-Type: application/json.'],
        JSON.stringify(headers),
      )
      assert.deepEqual(await post('/plain', headers, '{}'), [415, 'This call does not accept this content type.'])
      assert.deepEqual(await post('/nowhere', headers, '{}'), [
        404,
        'This server has no endpoint POST /nowhere (not found).',
      ])
    }
  })

  test('a POST that needs a body accepts `application/json` in any spelling, but answers 400 without a body', async () => {
    await using started = await start()
    const { server } = started
    const post = (type: string, payload: string) =>
      server.inject({ method: 'POST', url: '/named', headers: { 'content-type': type }, payload })
    for (const type of ['application/json', 'application/json; charset=utf-8', 'Application/JSON'])
      assert.equal((await post(type, '{"name":"x"}')).statusCode, 200, type)
    assert.equal((await post('text/plain', '')).statusCode, 400)
  })
})

suite('a request body that never ends', () => {
  test('a JSON body that never ends answers 408, with a body like that of other errors', async () => {
    await using started = await start()
    const { server } = started
    boundIncoming(server, { ownerOf: () => '', slow: { spanMs: 100 }, lookMs: 20 })
    const address = await server.listen({ port: 0, host: '127.0.0.1' })
    const headers = { 'content-type': 'application/json', 'content-length': 100 }
    const call = request(`${address}/named`, { method: 'POST', headers })
    call.write('{"name"')
    const [reply] = (await once(call, 'response')) as [IncomingMessage]
    const { statusCode, code, message, source, path } = (await json(reply)) as Record<string, unknown>
    assert.deepEqual(
      [statusCode, code, message, source, path],
      [
        408,
        'REQUEST_TIMEOUT',
        'The body of the request arrived too slowly, or not at all (timeout).',
        'TEST',
        '/named',
      ],
    )
    assert.deepEqual([reply.statusCode, reply.headers.connection], [408, 'close'])
    assert.ok(reply.headers['x-request-id'])
  })
})

suite('a request body that is not JSON', () => {
  test('a body that is not JSON answers 400, and the connection stays open', async () => {
    await using started = await start()
    const { server } = started
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    const post = async (address: string) => {
      const headers = { 'content-type': 'application/json' }
      const call = request(`${address}/named`, { method: 'POST', headers, agent }).end('{"name"')
      const [reply] = (await once(call, 'response')) as [IncomingMessage]
      await once(reply.resume(), 'end')
      return [reply.statusCode, call.reusedSocket]
    }
    try {
      const address = await server.listen({ port: 0, host: '127.0.0.1' })
      assert.deepEqual(
        [await post(address), await post(address)],
        [
          [400, false],
          [400, true],
        ],
      )
    } finally {
      agent.destroy()
    }
  })
})

suite('a route that reads its own body', () => {
  const length = Type.Object({ bytes: Type.Integer() })
  const measure = route({
    method: 'POST',
    path: '/measure',
    needs: 'public',
    summary: 'tells how long the body is',
    query: Type.Object({ refuse: Type.Optional(Type.Boolean()) }),
    streamsBody: true,
    replies: { 200: length },
    run: async ({ query, request }) => {
      if (query.refuse) throw new Problem('conflict')
      let bytes = 0
      for await (const piece of request.raw) bytes += piece.length
      return { bytes }
    },
  })
  const listen = async () => {
    const { server, [Symbol.asyncDispose]: dispose } = await start({ routes: [measure, ...routes], bodyLimit: 1000 })
    const url = await server.listen({ port: 0, host: '127.0.0.1' })
    const post = (path: string, body: string | null, headers: Record<string, string>) =>
      fetch(url + path, { method: 'POST', body, headers })
    return { post, [Symbol.asyncDispose]: dispose }
  }

  test('a route that streams its body accepts any content type and length', async () => {
    await using server = await listen()
    for (const type of [
      'application/json',
      'text/plain',
      'multipart/form-data; boundary=x',
      'application/octet-stream',
    ]) {
      const reply = await server.post('/measure', '{'.repeat(100_000), { 'content-type': type })
      assert.deepEqual([reply.status, await reply.json()], [200, { bytes: 100_000 }], type)
    }
    assert.deepEqual(await (await server.post('/measure', null, {})).json(), { bytes: 0 })
  })

  test('a route’s own body limit applies to that route only; a client that sends more gets the refusal', async () => {
    await using server = await listen()
    const refused = await server.post('/measure?refuse=true', 'x'.repeat(8_000_000), {})
    assert.equal(refused.status, 409)
    const json = { 'content-type': 'application/json' }
    assert.equal((await server.post('/named', JSON.stringify({ name: 'x'.repeat(2000) }), json)).status, 413)
  })
})
