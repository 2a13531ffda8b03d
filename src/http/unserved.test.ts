import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { silentLog } from '#src/kit/log.ts'
import { routesOf } from './route.ts'
import { createServer } from './server.ts'

const route = routesOf<object, 'public'>()
const served = (method: 'GET' | 'POST', path: string) =>
  route({ method, path, needs: 'public', summary: 'answers', replies: { 200: null }, run: () => undefined })

suite('calls of Daytona’s API that a server does not serve', () => {
  const start = () =>
    createServer<object, 'public'>({
      routes: [served('GET', '/things/:thing'), served('POST', '/things')],
      unserved: {
        'PUT /things/{}/colour/{}': 'Things have no colour.',
        'GET /things/all': 'Nobody needs it.',
        'POST /things': 'It is not built yet.',
      },
      prefixes: ['/api', ''],
      source: 'TEST',
      guard: () => ({}),
      log: silentLog(),
    })

  test('an unserved call of Daytona’s API answers 404 with the reason, whatever its parameters are', async () => {
    const server = await start()
    for (const prefix of ['', '/api']) {
      const url = `${prefix}/things/a%20b/colour/red`
      const headers = { 'content-type': 'text/odd' }
      const answer = await server.inject({ method: 'PUT', url: `${url}?now=true`, headers, payload: 'any' })
      const { message, code } = answer.json()
      assert.deepEqual(
        [answer.statusCode, code, message],
        [404, 'NOT_FOUND', `Alcove does not serve PUT ${url}. Things have no colour. (not found)`],
      )
    }
  })

  test('an unserved call answers with the reason, even if the route of a served call would fit its path', async () => {
    const server = await start()
    const ask = (url: string) => server.inject({ method: 'GET', url })
    assert.match(
      (await ask('/things/all')).json().message,
      /^Alcove does not serve GET \/things\/all\. Nobody needs it/,
    )
    assert.equal((await ask('/things/one')).statusCode, 200)
  })

  test('a call with a route is served, even if it is also in the list of unserved calls', async () => {
    const server = await start()
    assert.equal((await server.inject({ method: 'POST', url: '/things' })).statusCode, 200)
  })

  test('an unknown URL, which is not in the list of unserved calls, answers that no such call exists', async () => {
    const server = await start()
    const answer = await server.inject({ method: 'GET', url: '/things/a/colour/red' })
    assert.deepEqual(
      [answer.statusCode, answer.json().message],
      [404, 'This server has no endpoint GET /things/a/colour/red (not found).'],
    )
  })
})
