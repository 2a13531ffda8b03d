import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { startControl } from '#test/control/harness.ts'
import { connectRunner } from '#test/control/simulated-runner.ts'

suite('the endpoints `/preview/…`', () => {
  test('GET /preview/{sandboxId}/public, GET /preview/{sandboxId}/validate/{authToken}, GET /preview/{sandboxId}/preview-warning, GET /preview/{signedPreviewToken}/{port}/sandbox-id, GET /preview/{sandboxId}/access return the new values immediately after a change of the sandbox', async () => {
    await using app = await startControl({ sandboxes: { createWaitSeconds: 20 } })
    await using _runner = await connectRunner(app)
    const { id } = (await app.as('member').post('/sandbox', { name: 'box' })).body
    const ask = async (path: string) => (await app.as('proxy').get(`/preview/${path}`)).body
    assert.equal(await ask(`${id}/public`), false)
    await app.as('member').post('/sandbox/box/public/true')
    assert.equal(await ask(`${id}/public`), true)

    const { token } = (await app.as('member').get('/sandbox/box/ports/3000/preview-url')).body
    assert.equal(await ask(`${id}/validate/${token}`), true)
    assert.equal(await ask(`${id}/validate/${token.slice(1)}`), false)
    const other = (await app.as('member').post('/sandbox', { name: 'other' })).body
    assert.equal(await ask(`${other.id}/validate/${token}`), false)

    const signed = (await app.as('member').get('/sandbox/box/ports/3000/signed-preview-url')).body.token
    assert.equal(await ask(`${signed}/3000/sandbox-id`), id)
    assert.deepEqual(await ask(`${id}/preview-warning`), { enabled: false })
    assert.deepEqual(await ask(`${signed}/preview-warning?port=3000`), { enabled: false })
    await app
      .as('admin')
      .post(`/organizations/${other.organizationId}/preview-warning`, { previewWarningEnabled: true })
    assert.deepEqual(await ask(`${signed}/preview-warning?port=3000`), { enabled: true })

    assert.equal((await app.as('viewer').get(`/preview/${id}/access`)).body, true)
  })

  test('`/preview/…` answers 404 for an unknown sandbox, 400 for a bad port, 401 or 403 without a gate’s key', async () => {
    await using app = await startControl({ sandboxes: { createWaitSeconds: 20 } })
    await using _runner = await connectRunner(app)
    const { id } = (await app.as('member').post('/sandbox', { name: 'box' })).body
    const signed = (await app.as('member').get('/sandbox/box/ports/3000/signed-preview-url')).body.token
    const status = async (path: string, who: Parameters<typeof app.as>[0] = 'proxy') =>
      (await app.as(who).get(`/preview/${path}`)).status
    for (const path of ['nothing/public', 'box/public', `${signed}/3001/sandbox-id`, `${signed}/preview-warning`])
      assert.equal(await status(path), 404, path)
    assert.equal(await status(`${signed}/0/sandbox-id`), 400)
    assert.equal(await status(`${id}/access`, 'stranger'), 404)
    for (const path of [`${id}/public`, `${id}/validate/x`, `${id}/preview-warning`, `${signed}/3000/sandbox-id`])
      assert.deepEqual([await status(path, 'nobody'), await status(path, 'owner')], [401, 403], path)
    app.clock.advance({ seconds: 60 })
    assert.equal(await status(`${signed}/3000/sandbox-id`), 404)
  })
})
