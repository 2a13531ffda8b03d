import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { startControl } from '#test/control/harness.ts'
import { mostCharacters, shorten } from './tools.ts'

const initialize = {
  ...{ jsonrpc: '2.0', id: 1, method: 'initialize' },
  params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'test', version: '1' } },
}
const accept = { accept: 'application/json, text/event-stream' }

suite('POST /mcp, GET /mcp, DELETE /mcp', () => {
  test('POST /mcp answers 401 without a credential, 200 to a member, and 4xx if the body is no MCP message', async () => {
    await using app = await startControl()
    assert.equal((await app.as('nobody').post('/mcp', initialize, { headers: accept })).status, 401)
    const reply = await app.as('member').post('/mcp', initialize, { headers: accept })
    assert.equal(reply.status, 200)
    assert.match(reply.text, /"serverInfo":\{"name":"alcove"/)
    for (const body of [1, 'x', [], {}, { jsonrpc: '2.0' }, { jsonrpc: '1.0', id: 1, method: 'ping' }]) {
      const { status } = await app.as('member').post('/mcp', body, { headers: accept })
      assert.ok(status >= 400 && status < 500, `${JSON.stringify(body)}: ${status}`)
    }
  })

  test('GET /mcp and DELETE /mcp answer 405, because no sessions exist', async () => {
    await using app = await startControl()
    assert.equal((await app.as('member').get('/mcp', { headers: accept })).status, 405)
    assert.equal((await app.as('member').delete('/mcp')).status, 405)
  })

  test('if a text is too long, `shorten` removes its middle, and keeps its beginning and its end', () => {
    assert.equal(shorten('a'.repeat(mostCharacters)).length, mostCharacters)
    const short = shorten(`begin${'x'.repeat(mostCharacters)}end`)
    assert.match(short, /^begin.*\n\[… 8 characters are left out here …\]\n.*end$/)
  })
})
