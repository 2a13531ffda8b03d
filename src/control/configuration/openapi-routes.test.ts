import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startControl } from '#test/control/harness.ts'

test('GET /openapi.json describes all other endpoints of control, and answers every caller', async () => {
  await using app = await startControl()
  const { status, body } = await app.as('nobody').get('/openapi.json')
  assert.equal(status, 200)
  const paths = body['paths'] as Record<string, Record<string, unknown>>
  const described = Object.entries(paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  )
  const routes = app.app.routes.map(({ method, path }) => `${method} ${path.replaceAll(/:(\w+)/g, '{$1}')}`)
  assert.deepEqual(described.sort(), routes.filter((route) => route !== 'GET /openapi.json').sort())
})
