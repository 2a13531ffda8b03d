import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import Type from 'typebox'
import { silentLog } from '#src/kit/log.ts'
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

const start = () => createServer({ routes, prefixes: [''], source: 'TEST', guard: () => ({}), log: silentLog() })

suite('content types', () => {
  const form = { 'content-type': 'application/x-www-form-urlencoded' }

  test('200 for a POST without a body, whatever content type it names', async () => {
    const server = await start()
    for (const headers of [{}, form, { 'content-type': 'application/json' }]) {
      const reply = await server.inject({ method: 'POST', url: '/plain', headers })
      assert.equal(reply.statusCode, 200, JSON.stringify(headers))
    }
    await server.close()
  })

  test('415 for a body that is not JSON, and 400 for a body that is missing', async () => {
    const server = await start()
    const post = (headers: Record<string, string>, payload: string) =>
      server.inject({ method: 'POST', url: '/named', headers, payload })
    assert.equal((await post(form, 'name=x')).statusCode, 415)
    assert.equal((await post(form, '')).statusCode, 400)
    assert.equal((await post({ 'content-type': 'application/json' }, '{"name":"x"}')).statusCode, 200)
    await server.close()
  })
})
