import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { startControl, type TestControl } from '#test/control/harness.ts'
import { keys } from '#test/control/people.ts'
import { connectRunner } from '#test/control/simulated-runner.ts'

const waits = { sandboxes: { createWaitSeconds: 20 } }

const ask = async (app: TestControl, sandboxIdOrName: string) => {
  const credentials = [{ kind: 'bearer', token: keys.owner }]
  return (await app.as('proxy').post('/proxy/access', { sandboxIdOrName, credentials, countsAsActivity: true })).body
}

/** Registers a runner of another machine, and returns its token. */
const addRunner = async (app: TestControl): Promise<string> =>
  (await app.as('admin').post('/runners', { name: 'other', regionId: 'local' })).body.apiKey

suite('the gate of a sandbox’s host', () => {
  test('POST /proxy/access names the gate of the sandbox’s host; replies with a sandbox contain this gate’s public URL', async () => {
    await using app = await startControl(waits)
    const token = await addRunner(app)
    const gate = { id: 'other', address: '198.51.100.7:4604', publicUrl: 'https://other.example.com' }
    await using _runner = await connectRunner(app, { token, gate })
    const owner = app.as('owner')
    const { body: made } = await owner.post('/sandbox', { name: 'box', labels: { a: 'b' } })
    const { gate: told, ticket } = await ask(app, made.id)
    const [, , payload] = ticket.split('.')
    assert.equal(JSON.parse(Buffer.from(payload, 'base64url').toString()).gateId, 'other')
    assert.deepEqual(told, { id: 'other', address: '198.51.100.7:4604' })
    const listed = (await owner.get('/sandbox')).body.items[0]
    const { body: stopped } = await owner.post(`/sandbox/${made.id}/stop`)
    const { body: unlabelled } = await owner.put(`/sandbox/${made.id}/labels`, { labels: {} })
    const { body: url } = await owner.get(`/sandbox/${made.id}/toolbox-proxy-url`)
    const { body: record } = await owner.get('/sandbox/box')
    const urls = [made, listed, stopped, record].map(({ toolboxProxyUrl }) => toolboxProxyUrl)
    assert.deepEqual([...new Set([...urls, url.url])], ['https://other.example.com/toolbox'])
    assert.deepEqual(unlabelled, { labels: {} })
  })

  test('if a runner reports another host’s gate, control closes the runner’s link and stores no gate address', async () => {
    await using app = await startControl(waits)
    const token = await addRunner(app)
    await assert.rejects(connectRunner(app, { token, gate: { id: 'third', address: '198.51.100.9:4604' } }), /closed/)
    const [row] = await app.database.sql`select gate_id, address, state from runners where id = 'other'`
    assert.deepEqual({ ...row }, { gate_id: null, address: null, state: 'initializing' })
  })
})
