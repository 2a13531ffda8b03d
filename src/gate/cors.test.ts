import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { toolboxPort } from '#src/wire/access.ts'
import { startSides } from './testing/simulated.ts'
import { visit } from './testing/visiting.ts'

const bearer = { authorization: 'Bearer key-1' }

suite('calls from browsers to the gate', () => {
  test('the gate answers OPTIONS without a credential as a CORS preflight that allows the requested headers', async () => {
    await using sides = await startSides()
    const reply = await fetch(`${sides.url}/toolbox/box/process/execute`, {
      method: 'OPTIONS',
      headers: {
        origin: 'https://app.example',
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'authorization,x-daytona-source,traceparent',
      },
    })
    assert.equal(reply.status, 204)
    assert.equal(reply.headers.get('access-control-allow-origin'), 'https://app.example')
    assert.equal(reply.headers.get('access-control-allow-headers'), 'authorization,x-daytona-source,traceparent')
    assert.match(reply.headers.get('access-control-allow-methods') ?? '', /POST/)
    assert.deepEqual([sides.asked.length, sides.seen.length], [0, 0])
  })

  test('the gate itself answers a CORS preflight (OPTIONS) to port 2280 of a preview, which is the toolbox', async () => {
    await using sides = await startSides()
    const host = `${toolboxPort}-box-id.proxy.test:4601`
    const origin = 'https://app.example'
    const preflight = await visit(sides, { method: 'OPTIONS', host, path: '/files', headers: { origin } })
    assert.deepEqual([preflight.status, preflight.headers['access-control-allow-origin']], [204, origin])
    assert.deepEqual([sides.asked.length, sides.seen.length], [0, 0])
    assert.equal((await visit(sides, { host, path: '/files', headers: { origin, ...bearer } })).status, 200)
  })

  test('the gate’s answers and errors have CORS headers that allow the page’s origin, but no cookies', async () => {
    await using sides = await startSides()
    for (const headers of [{ origin: 'https://a.example', ...bearer }, { origin: 'https://a.example' }]) {
      const reply = await fetch(`${sides.url}/toolbox/box/x`, { headers })
      assert.equal(reply.headers.get('access-control-allow-origin'), 'https://a.example')
      assert.equal(reply.headers.get('access-control-allow-credentials'), null)
      assert.match(reply.headers.get('access-control-expose-headers') ?? '', /\bX-Alcove-Truncated\b/)
    }
  })
})
